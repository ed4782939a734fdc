make-input model m
glyd fit m --gpu Z9000
