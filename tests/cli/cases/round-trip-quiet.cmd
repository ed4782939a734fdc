make-input model m
glyd pack -q m packed --hash-files
glyd verify -q packed
glyd unpack -q packed back
diff -r m back
