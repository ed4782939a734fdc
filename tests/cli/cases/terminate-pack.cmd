make-input large m 128
signal-when TERM .out.glyd-staging glyd pack m out
