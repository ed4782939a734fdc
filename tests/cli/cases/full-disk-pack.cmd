# leaves: .out.glyd-staging
# A limit on the size of files stands for a full disk.
make-input large m 4
ulimit -f 1024
glyd pack m out
