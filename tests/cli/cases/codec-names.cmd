# FILE.glyd and back; another name needs -o.
seq 1000 > text
glyd compress text -q
mv text.glyd renamed
glyd decompress renamed || echo "exit $?"
glyd decompress renamed -o back -q
cmp text back
name=$(printf 'x%.0s' $(seq 249))
cp text "$name"
glyd compress "$name" -q
rm "$name"
glyd decompress "$name.glyd" -q
cmp text "$name"
