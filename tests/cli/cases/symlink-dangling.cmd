make-input model m
ln -s nowhere.txt m/notes.txt
glyd pack m out
