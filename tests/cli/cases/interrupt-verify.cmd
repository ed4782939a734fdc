make-input large m 64
glyd pack m packed -q
signal-when INT packed glyd verify packed
