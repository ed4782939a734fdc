# Sources are kept, unless --rm says otherwise; -k wins over it; what failed is kept anyway.
seq 1000 > a
seq 2000 > b
glyd compress a -q
ls
glyd compress b --rm --keep -q
ls
glyd compress a b --rm -q || echo "exit $?"
glyd compress a b --rm -q -f
ls
glyd decompress a.glyd b.glyd --rm -q
ls
glyd compress a -c --rm || echo "exit $?"
cp a bad.glyd
glyd decompress bad.glyd --rm || echo "exit $?"
ls
