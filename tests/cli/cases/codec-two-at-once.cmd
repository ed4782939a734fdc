# The second to the same target is told so, and the first one's is whole.
make-input large m 64
glyd --ultra m/model.safetensors -o big.glyd -q -T 1 &
while [ ! -e .big.glyd.glyd-staging ]; do sleep 0.01; done
glyd --default m/model.safetensors -o big.glyd || echo "exit $?"
kill -TERM $!
wait $! || echo "exit $?"
ln -s /etc/hostname .big.glyd.glyd-staging
glyd --default m/model.safetensors -o big.glyd || echo "exit $?"
rm .big.glyd.glyd-staging
ls -A
