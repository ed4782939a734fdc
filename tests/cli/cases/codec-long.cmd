# --long finds what lies further back than a unit of max.
python3 -c 'import random, sys; b = random.Random(1).randbytes(3 << 20); sys.stdout.buffer.write(b + bytes(8 << 20) + b)' > far
glyd --max far -o near.glyd -q
glyd --max --long far -o long.glyd -q
for frame in near long; do
  test $(stat -c %s $frame.glyd) -gt 6000000 && echo "$frame: twice" || echo "$frame: once"
  glyd -d $frame.glyd -o back -f -q && cmp far back
done
try() { glyd "$@" || echo "exit $?"; }
try compress far --long --unit 16MiB
try compress far --long --default
