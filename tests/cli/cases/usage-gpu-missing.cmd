make-input model m
glyd fit m
