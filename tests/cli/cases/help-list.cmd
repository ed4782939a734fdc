glyd list --help
