glyd sizes --help
