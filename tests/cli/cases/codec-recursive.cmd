# File by file; links stay; what fails is named and the rest done.
mkdir -p d/sub
seq 1000 > d/a
seq 2000 > d/sub/b
seq 3000 > d/c.glyd
ln -s a d/link
mkfifo d/pipe
glyd compress d || echo "exit $?"
glyd compress d -r -o one.glyd || echo "exit $?"
glyd compress d -r | sed 's/: .*//'
glyd compress -r d -q || echo "exit $?"
find d | sort
glyd test -r d | sed 's/ in .*//' || echo "exit $?"
rm d/c.glyd d/a
glyd decompress -r d -q || echo "exit $?"
seq 1000 | cmp - d/a
glyd list -r d --json | grep '"file"'
