# Permissions and times go along, both ways; a pipe's content gets the usual ones.
seq 1000 > text
chmod 640 text
touch -d '2001-02-03 04:05:06.5 UTC' text
glyd compress text -q
stat -c '%a %Y' text.glyd
rm text
glyd decompress text.glyd -q
stat -c '%a %Y' text
umask 027
cat text | glyd compress -o pipe.glyd -q
stat -c %a pipe.glyd
chmod 400 text
glyd compress text -o read-only.glyd -q
stat -c %a read-only.glyd
