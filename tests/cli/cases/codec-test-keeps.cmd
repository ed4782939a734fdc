# A test removes nothing, whatever is asked of it.
seq 1000 > text
glyd compress text -q
glyd test text.glyd --rm || echo "exit $?"
glyd test text.glyd -q
chmod 400 text.glyd
glyd test text.glyd -q
ls
