make-input model m
glyd pack m packed
glyd verify packed --source m
glyd unpack packed back
diff -r m back
