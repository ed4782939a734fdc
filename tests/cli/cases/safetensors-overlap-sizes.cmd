make-input overlap m
glyd sizes m
