make-input model m
glyd fit m --gpu 24GB
glyd fit m --gpu 1000000000 --context 512 --batch 4
