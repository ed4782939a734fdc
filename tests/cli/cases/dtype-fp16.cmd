make-input fp16 m
glyd pack m packed
glyd unpack packed back -q
diff -r m back
glyd sizes m
