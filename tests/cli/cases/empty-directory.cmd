make-input empty-directory m
glyd pack m out
