glyd compress --help
