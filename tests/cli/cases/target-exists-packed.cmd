make-input model m
glyd pack m packed -q
glyd pack m packed || echo "exit $?"
glyd pack m packed --layout small --overwrite -q
glyd verify packed -q
grep -c '"layout": *"small"' packed/glyd.json
