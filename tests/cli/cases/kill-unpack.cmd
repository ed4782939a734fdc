make-input large m 64
glyd pack m packed -q
signal-when KILL .out.glyd-staging glyd unpack packed out || echo "exit $?"
ls -d out 2> /dev/null || echo "no out"
glyd unpack packed out -q
cmp m/model.safetensors out/model.safetensors
find . -maxdepth 1 -name '.*.glyd-staging'
