make-input large m 128
signal-when INT .out.glyd-staging glyd pack m out
