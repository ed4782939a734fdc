# The first 20 are named, the others counted.
make-input model m
for i in $(seq 30); do echo $i > m/file-$i; done
glyd pack m packed -q
for i in $(seq 30); do rm packed/file-$i; done
glyd verify packed 2> messages || echo "exit $?"
wc -l < messages
tail -1 messages
