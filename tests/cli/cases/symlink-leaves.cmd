make-input model m
echo secret > outside.txt
ln -s ../outside.txt m/notes.txt
glyd pack m out
