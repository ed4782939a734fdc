make-input large m 64
glyd pack m packed -q
signal-when INT open:packed/glyd-00001-of-00001.safetensors glyd verify packed
