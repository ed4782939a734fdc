# Not from a pipe; of what is no frame, what it is.
seq 1000 > text
glyd compress text -q --default
glyd list text.glyd | cut -c 1-25
glyd list text || echo "exit $?"
cat text.glyd | glyd list - || echo "exit $?"
glyd list < text.glyd || echo "exit $?"
