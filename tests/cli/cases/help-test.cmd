glyd test --help
