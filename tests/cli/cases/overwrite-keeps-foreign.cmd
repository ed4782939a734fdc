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
# What the packed model itself carried goes with its weights; what was changed since does not.
make-input sharded other
rm -r other/tokenizer other/README.md
echo changed > packed/README.md
glyd pack other packed --overwrite -q || echo "exit $?"
cp m/README.md packed/README.md
glyd pack other packed --overwrite -q
glyd verify packed -q
glyd pack m/model.safetensors packed --overwrite -q
glyd verify packed -q
