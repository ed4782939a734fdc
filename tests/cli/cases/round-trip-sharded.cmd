make-input sharded m
mkdir m/nothing-in-it
chmod 600 m/README.md
glyd pack m packed
find packed | LC_ALL=C sort
glyd verify packed --source m
glyd unpack packed back
diff -r m back
stat -c %a back/README.md
