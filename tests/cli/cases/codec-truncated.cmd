# A cut is an error, also in a test; nothing half-written stays; what lies before it goes to a pipe first.
seq 200000 > text
glyd compress text --unit 128KiB -q
size=$(stat -c %s text.glyd)
for keep in 3 30 2000 $((size / 2)) $((size - 1)); do
  head -c $keep text.glyd > cut.glyd
  glyd test cut.glyd 2> message || echo "exit $? $(grep -c 'cut.glyd' message)"
  glyd decompress cut.glyd 2> message || echo "exit $?"
  [ ! -e cut ] || echo "left something"
done
head -c $((size / 2)) text.glyd | glyd cat - > part 2> message || echo "exit $?"
cmp text part 2>&1 | sed 's/after byte.*/after what came before/'
[ $(stat -c %s part) -gt $(($(stat -c %s text) / 4)) ] && echo "a good part of it"
grep -o 'truncated: the input ends' message
