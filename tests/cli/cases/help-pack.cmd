glyd pack --help
