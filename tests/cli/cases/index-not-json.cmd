make-input index-not-json m
glyd pack m out
