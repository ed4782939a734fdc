make-input model m
glyd pack m packed -q
make-input set-manifest packed '[64, 63]' tensors model.layers.0.self_attn.q_proj.weight shape
glyd verify packed
