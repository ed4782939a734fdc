glyd --verison
