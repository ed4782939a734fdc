make-input model m
glyd pack m packed -q
rm packed/glyd.json
glyd verify packed
