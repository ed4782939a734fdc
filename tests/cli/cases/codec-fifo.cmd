# What reads at any place does not wait for a pipe that nobody writes to; what reads forward takes one.
mkfifo pipe
glyd list pipe || echo "exit $?"
glyd cat --range 0:10 pipe || echo "exit $?"
for verb in "pack pipe out" "sizes pipe" "inspect pipe" "fit pipe --gpu 48GB" "verify pipe" "unpack pipe out"; do
  glyd $verb || echo "exit $?"
done
echo content > file
glyd compress file -o file.glyd -q
cat file.glyd > pipe &
glyd cat pipe
cat file > pipe &
glyd compress pipe -o piped.glyd -q
glyd cat piped.glyd
