make-input model m
ln -s tokenizer m/again
glyd pack m out
