# At any number of threads, on any instruction set, from any pieces.
make-input large m 24
for level in default max ultra; do
  head -c 3000000 m/model.safetensors > part
  glyd compress part --level $level --unit 256KiB -T 1 -o one.glyd -q -f
  for threads in 2 3 7; do glyd compress part --level $level --unit 256KiB -T $threads -c | cmp - one.glyd; done
  GLYD_CPU=scalar glyd compress part --level $level --unit 256KiB -c | cmp - one.glyd
  GLYD_CPU=scalar glyd -d one.glyd -c | cmp - part
done
echo same
