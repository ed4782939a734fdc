make-input conv1d m
glyd inspect m --json
