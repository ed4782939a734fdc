make-input model m
glyd pack m packed -q
glyd inspect packed
