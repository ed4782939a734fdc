# Must not hang.
make-input model m
mkfifo m/pipe
glyd pack m out
