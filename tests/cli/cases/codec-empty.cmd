# An empty file is a content like others; an empty frame is none.
: > empty
glyd compress empty -q
stat -c %s empty.glyd
glyd decompress empty.glyd -o back -q
stat -c %s back
: | glyd compress | cmp - empty.glyd
glyd decompress empty -o other || echo "exit $?"
glyd test < empty || echo "exit $?"
glyd list empty || echo "exit $?"
ls
