make-input model m
glyd pack m packed -q
echo hello > packed/stranger.txt
glyd verify packed
