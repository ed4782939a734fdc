# requires: no-sanitizer
# One tensor of 32 MiB does not fit into 60 MiB of address space.
make-input large m 256
ulimit -v 60000
glyd pack m out --threads 1
