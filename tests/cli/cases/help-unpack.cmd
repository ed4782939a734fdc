glyd unpack --help
