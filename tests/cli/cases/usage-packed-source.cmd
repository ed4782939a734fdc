make-input model m
glyd pack m packed --quiet
glyd pack packed out
