make-input large m 4
glyd pack m packed -q
ulimit -f 1024
glyd unpack packed out
