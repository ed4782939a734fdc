# A reader that goes away ends the program, quietly and at once, also where SIGPIPE is ignored.
make-input large m 16
glyd compress m/model.safetensors -o big.glyd -q
for pipe in default ignored; do
  [ $pipe = ignored ] && trap '' PIPE
  glyd cat big.glyd | head -c 1 | wc -c
  glyd -d big.glyd -c -T 2 | head -c 1 | wc -c
  glyd compress m/model.safetensors -c | head -c 1 | wc -c
  cat m/model.safetensors | glyd compress | head -c 1 | wc -c
done
