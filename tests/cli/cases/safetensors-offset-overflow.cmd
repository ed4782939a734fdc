make-input offset-overflow m
glyd pack m out
