# What people see; the sizes that the codec reaches are left out.
seq 1000 > text
glyd compress text | sed 's/ in .*//'
mv text original
glyd decompress text.glyd
glyd test text.glyd | sed 's/ in .*//'
glyd decompress text.glyd -o other --quiet
cmp original text
cmp original other
