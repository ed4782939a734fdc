glyd --help
