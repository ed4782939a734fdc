# Other formats are named as such.
seq 1000 > text
gzip -k text
glyd decompress text.gz -o back || echo "exit $?"
glyd test text || echo "exit $?"
printf 'GLYC\377' > newer
head -c 100 /dev/zero >> newer
glyd test newer 2> message || echo "exit $?"
sed "s/reads version .*/reads another/" message
