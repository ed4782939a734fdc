make-input model m
glyd sizes m
