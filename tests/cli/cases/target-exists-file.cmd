# leaves: out
make-input model m
echo mine > out
glyd pack m out || echo "exit $?"
cat out
glyd pack m out --overwrite
