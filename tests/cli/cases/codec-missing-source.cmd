# The target is not touched.
echo "a target" > out.file
glyd compress nothing -o out.file --overwrite || echo "exit $?"
glyd decompress nothing.glyd -o out.file --overwrite || echo "exit $?"
glyd compress nothing || echo "exit $?"
mkdir folder
glyd compress folder -o out.file -f || echo "exit $?"
cat out.file
ls
