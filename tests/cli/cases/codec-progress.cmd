# A bar on a terminal, in bytes of content; of a pipe, without a share.
make-input large m 32
glyd compress m/model.safetensors -o big.glyd --unit 256KiB -q
on-terminal glyd -d big.glyd -o back -T 1 > drawn
grep -q '^decompressing *[0-9]*% \[[# ]*\]  [0-9.]* [kM]*B of 33.6 MB  [0-9.]* [MG]B/s  [0-9]*:[0-9]* left' drawn && echo "drawn"
cat big.glyd | on-terminal glyd test -T 1 > drawn
grep -q '^testing  [0-9.]* [kM]*B  [0-9.]* [kMG]*B/s  standard input' drawn && echo "drawn"
on-terminal glyd --max m/model.safetensors --unit 256KiB -o two.glyd > drawn
grep -q '^compressing *[0-9]*% ' drawn && echo "drawn"
on-terminal glyd test big.glyd -q | wc -c
glyd test big.glyd 2> messages > summary
wc -c < messages
