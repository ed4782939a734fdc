make-input model m
glyd pack m packed -q
sed -i 's/"layout": *"fast"/"layout": "small"/' packed/glyd.json
glyd verify packed
