# Standard input and output, as pipes and as files; a pipe's content gets the ratio that a file's gets, and its size is kept.
seq 300000 > text
cat text | glyd compress > pipe.glyd
glyd compress < text > redirected.glyd
glyd compress text -c > stdout.glyd
glyd --max - -o - < text > dashes.glyd
cat text | glyd compress -o named.glyd -q
cmp redirected.glyd stdout.glyd && cmp stdout.glyd dashes.glyd && cmp pipe.glyd named.glyd
[ $(stat -c %s pipe.glyd) -eq $(stat -c %s stdout.glyd) ] && echo "the same size"
cat pipe.glyd | glyd -d | cmp - text
glyd -d < pipe.glyd | cmp - text
cat pipe.glyd | glyd decompress -o back -q
cmp back text
cat pipe.glyd | glyd test -q && cat pipe.glyd | glyd cat - | cmp - text
glyd list pipe.glyd --json | grep content_bytes
glyd -d <(cat pipe.glyd) -o from-fifo -q
cmp from-fifo text
