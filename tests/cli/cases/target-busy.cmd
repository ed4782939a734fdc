# leaves: .out.glyd-staging
# Another process holds the lock of the target's staging directory.
make-input model m
mkdir .out.glyd-staging
flock .out.glyd-staging/lock glyd pack m out
