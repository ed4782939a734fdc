# Files that the new contents do not have are never lost: not by pack, not by unpack.
# leaves: out
make-input model m
glyd pack m packed -q
echo mine > packed/notes.txt
mkdir packed/checkpoint-5
glyd pack m packed --overwrite -q || echo "exit $?"
cat packed/notes.txt
rm packed/notes.txt
rmdir packed/checkpoint-5
glyd pack m packed --overwrite -q
cp -r m out
touch out/a out/b out/c out/d out/e out/f
glyd unpack packed out --overwrite -q || echo "exit $?"
rm out/?
echo edited > out/README.md
glyd unpack packed out --overwrite -q
diff -r m out
# Another model, which has no tokenizer/, does not take that of the first one away.
make-input sharded other
rm -r other/tokenizer
glyd pack other packed --overwrite -q || echo "exit $?"
# One file over a packed directory: its README.md and the rest are not that file's.
glyd pack m/model.safetensors packed --overwrite -q || echo "exit $?"
