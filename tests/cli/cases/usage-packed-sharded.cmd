# A packed model whose carried index names the source's shards is refused as packed.
make-input sharded m
glyd pack m packed -q
glyd pack packed again
