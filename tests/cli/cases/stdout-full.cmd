# A result that cannot be written is an error.
glyd --version > /dev/full
