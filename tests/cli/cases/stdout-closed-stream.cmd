# A standard stream that is closed: an error where it is needed, and never another file in its place.
seq 1000 > text
glyd compress text -q
glyd compress text -c >&- || echo "exit $?"
glyd cat text.glyd >&- || echo "exit $?"
glyd compress - -o out.glyd <&- || echo "exit $?"
glyd list text.glyd >&- || echo "exit $?"
glyd decompress text.glyd -o back <&- 2>&- && cmp back text
glyd compress missing text -f <&- 2>&- || echo "exit $?"
glyd test text.glyd -q
