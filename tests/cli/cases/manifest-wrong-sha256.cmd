# One tensor's sha256, in a manifest whose own hash is right.
make-input model m
glyd pack m packed -q
make-input set-manifest packed "\"$(printf 'ab%.0s' $(seq 32))\"" tensors model.layers.1.mlp.down_proj.weight sha256
glyd verify packed
