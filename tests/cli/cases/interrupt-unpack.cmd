make-input large m 64
glyd pack m packed -q
signal-when INT .out.glyd-staging glyd unpack packed out
