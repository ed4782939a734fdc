make-input model m
glyd pack m one -q --threads 1
glyd pack m two -q --threads 4
diff -r one two
