# Ctrl-C ends it at once and leaves nothing; a pipe's reader just sees the end.
make-input large m 64
signal-when INT .big.glyd.glyd-staging glyd --ultra m/model.safetensors -o big.glyd || echo "exit $?"
signal-when TERM .big.glyd.glyd-staging glyd --ultra m/model.safetensors -o big.glyd || echo "exit $?"
ls -A
