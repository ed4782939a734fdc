glyd cat --help
