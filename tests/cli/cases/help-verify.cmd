glyd verify --help
