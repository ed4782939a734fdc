make-input model m
glyd verify m/README.md
