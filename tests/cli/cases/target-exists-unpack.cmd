# leaves: out
make-input model m
glyd pack m packed -q
mkdir out
echo mine > out/file
glyd unpack packed out
