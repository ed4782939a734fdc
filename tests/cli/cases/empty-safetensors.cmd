# A valid file without tensors: there is nothing to pack, and it comes back.
make-input empty-header m
glyd pack m packed
glyd unpack packed back -q
diff -r m back
