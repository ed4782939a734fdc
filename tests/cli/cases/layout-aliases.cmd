make-input model m
glyd pack m a -q --layout mma12
glyd pack m b -q --layout fast
diff -r a b
glyd pack m c -q --layout mma
glyd pack m d -q --layout small
diff -r c d
