glyd fit --help
