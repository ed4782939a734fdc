# A bar with bytes, rate and time left, no wider than the terminal, taken away at the end.
# Large enough to be at work for several times the tenth of a second between two drawings.
make-input large m 256
on-terminal glyd pack m packed -q > quiet
on-terminal glyd pack m one --json > drawn
grep -q '^packing *[0-9]*% \[[# ]*\]  [0-9.]* MB of [0-9.]* MB  [0-9.]* [MG]B/s  [0-9]*:[0-9]* left' drawn && echo "drawn"
awk 'length > 100' drawn | grep -v '^{' || true
wc -c < quiet
