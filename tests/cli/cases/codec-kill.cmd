# Killed: no target, a staging file, which the next run takes over.
make-input large m 64
signal-when KILL .big.glyd.glyd-staging glyd --max m/model.safetensors -T 1 -o big.glyd || echo "exit $?"
ls -A
glyd --default m/model.safetensors -o big.glyd -q
ls -A
signal-when KILL .back.glyd-staging glyd -d big.glyd -T 1 -o back || echo "exit $?"
ls -A
glyd -d big.glyd -o back -q
cmp back m/model.safetensors
ls -A
