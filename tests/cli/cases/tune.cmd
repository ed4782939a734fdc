glyd tune --json
