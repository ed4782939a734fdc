make-input conv1d m
glyd pack m packed -q
glyd inspect packed
glyd unpack packed back -q
diff -r m back
