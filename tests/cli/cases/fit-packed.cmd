make-input model m
glyd pack m packed -q
glyd fit packed --gpu H200
