# A ceiling, which is named, and easily lifted.
seq 200000 > text
glyd --ultra text -q
cat text | glyd --ultra > pipe.glyd
glyd decompress pipe.glyd -o back --memory 8MiB || echo "exit $?"
glyd test pipe.glyd -M 8MiB || echo "exit $?"
glyd test pipe.glyd -M 128MiB -q
glyd test text.glyd -M 16MiB -q && echo "a known size needs less"
glyd test pipe.glyd -M 0 -q
glyd test pipe.glyd -M lots || echo "exit $?"
cat text | glyd compress --unit 1GiB > hostile.glyd
glyd test hostile.glyd || echo "exit $?"
glyd test hostile.glyd -M 3GiB -T 1 -q
