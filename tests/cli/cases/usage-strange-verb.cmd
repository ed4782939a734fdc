# Nothing is near: no suggestion.
glyd frobnicate
