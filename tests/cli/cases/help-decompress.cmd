glyd decompress --help
