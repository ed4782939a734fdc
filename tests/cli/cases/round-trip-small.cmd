make-input model m
glyd pack m packed --layout small --threads 1
glyd verify packed
glyd unpack packed back --threads 2
diff -r m back
