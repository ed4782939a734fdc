glyd tune --help
