glyd completion --help
