glyd
