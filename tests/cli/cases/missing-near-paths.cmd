# A slip in a path is no repo id: nothing advises to download it.
mkdir models
make-input model m
glyd pack models/foo out || echo "exit $?"
glyd verify models/foo || echo "exit $?"
glyd unpack packed out || echo "exit $?"
glyd inspect models/foo || echo "exit $?"
glyd pack org/name out || echo "exit $?"
