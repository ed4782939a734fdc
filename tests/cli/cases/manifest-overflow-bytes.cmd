make-input model m
glyd pack m packed -q
make-input set-manifest packed 18446744073709551615 source_files 0 shard_bytes
glyd verify packed
