# `glyd help VERB` and `glyd VERB --help` are one page.
glyd help verify > one
glyd verify --help > two
cmp one two
