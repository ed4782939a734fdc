make-input conv1d m
glyd sizes m --json
