make-input model m
rm m/config.json
mkdir m/config.json
glyd pack m packed -q
glyd unpack packed back -q
diff -r m back
