make-input mixed-dtypes m
glyd pack m packed
glyd unpack packed back -q
diff -r m back
