glyd --version
