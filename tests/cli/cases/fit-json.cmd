make-input model m
glyd fit m --gpu 8GiB --context 1024 --json
