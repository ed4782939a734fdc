# leaves: out
make-input model m
mkdir out
echo mine > out/file
glyd pack m out || echo "exit $?"
cat out/file
glyd pack m out --overwrite
