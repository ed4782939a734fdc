glyd inspect --help
