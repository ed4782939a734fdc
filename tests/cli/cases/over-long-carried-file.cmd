make-input model m
glyd pack m packed -q
echo more >> packed/README.md
glyd verify packed
