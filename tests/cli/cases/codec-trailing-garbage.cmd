# Bytes after a frame that are no frame are named; frames after each other are one content.
seq 1000 > text
glyd compress text -q
cat text.glyd text.glyd > two.glyd
glyd decompress two.glyd -q
cat text text | cmp - two
glyd list two.glyd --json | grep -E 'frames|"content_bytes'
cp text.glyd junk.glyd
echo junk >> junk.glyd
for verb in test list decompress; do glyd $verb junk.glyd 2> message || echo "exit $?"; sed 's/[0-9][0-9]*/N/g' message; done
ls
