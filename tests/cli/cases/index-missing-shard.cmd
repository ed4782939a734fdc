make-input index-missing-shard m
glyd pack m out
