# Devices and pipes are written as they are, and not replaced.
seq 100000 > text
glyd compress text -o /dev/null -q
stat -c %F /dev/null
mkfifo pipe
cat pipe > got &
glyd compress text -o pipe -q
wait
stat -c %F pipe
glyd decompress got -o back -q
cmp text back
