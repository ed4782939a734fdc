make-input overlap m
glyd inspect m
