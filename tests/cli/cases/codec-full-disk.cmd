# A limit on the size of files stands for a full disk: an error that names the file, nothing left, what was there kept.
make-input large m 4
glyd compress m/model.safetensors -o whole.glyd -q
echo kept > kept
ulimit -f 1024
glyd compress m/model.safetensors -o big.glyd || echo "exit $?"
glyd compress m/model.safetensors -o kept -f || echo "exit $?"
glyd decompress whole.glyd -o back || echo "exit $?"
glyd decompress whole.glyd -c > stdout.back || echo "exit $?"
rm stdout.back
cat kept
ls -A
