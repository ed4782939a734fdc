# Not under NO_COLOR, and not where standard error is no terminal.
make-input large m 16
NO_COLOR=1 on-terminal glyd verify missing || echo "exit $?"
NO_COLOR=1 on-terminal glyd pack m one > drawn
grep -c packing drawn || true
glyd pack m two 2> messages > summary
wc -c < messages
