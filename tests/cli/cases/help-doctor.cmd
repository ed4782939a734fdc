glyd doctor --help
