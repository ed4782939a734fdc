make-input model m
glyd pack m packed -q
echo more >> m/README.md
glyd verify packed --source m
