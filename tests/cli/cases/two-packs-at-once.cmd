# One of two packs to one target wins, the other is refused; the winner's result is whole.
make-input large m 32
glyd pack m out -q &
first=$!
while [ ! -e .out.glyd-staging/lock ] && [ ! -e out ]; do :; done
glyd pack m out -q 2> message && echo "the second one came too late" || echo "exit $?"
wait $first
glyd verify out -q
grep -q -e "another process" -e "exists already" message || cat message
