make-input model m
glyd pack m packed --json
glyd verify packed --json
glyd unpack packed back --json
diff -r m back
