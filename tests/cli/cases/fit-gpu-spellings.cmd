# Amounts and names as people write them.
make-input model m
for gpu in 48GB 48gb 48G 48GiB 48000000000 4090 "RTX 4090" "NVIDIA H100 80GB HBM3" A6000; do
  glyd fit m --gpu "$gpu" | head -1
done
glyd fit m --gpu 48 || echo "exit $?"
glyd fit m --gpu 4091 || echo "exit $?"
