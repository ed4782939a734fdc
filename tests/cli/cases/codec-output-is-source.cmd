# Refused by whatever name, and nothing is lost.
seq 1000 > text
cp text kept
ln -s text link
ln text hard
glyd compress text -o text --overwrite || echo "exit $?"
glyd compress text -o link --overwrite || echo "exit $?"
glyd compress text -o hard --overwrite || echo "exit $?"
glyd compress link -o text --overwrite || echo "exit $?"
glyd compress -o ./text --overwrite < text || echo "exit $?"
glyd compress text -c >> text || echo "exit $?"
cmp text kept
glyd compress text -q
cp text.glyd frame
glyd decompress text.glyd -o text.glyd -f || echo "exit $?"
glyd decompress text.glyd --salvage -o text.glyd -f || echo "exit $?"
cmp text.glyd frame
