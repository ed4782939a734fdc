make-input index-missing-tensor m
glyd pack m out
