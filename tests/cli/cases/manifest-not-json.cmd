make-input model m
glyd pack m packed -q
echo '{' > packed/glyd.json
glyd verify packed
