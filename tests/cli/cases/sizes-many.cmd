make-input model a
make-input mixed-dtypes b
glyd sizes a b -q
