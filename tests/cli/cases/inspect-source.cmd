make-input sharded m
glyd inspect m
