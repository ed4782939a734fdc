# pack, verify, unpack, salvage and inspect count the same files of the source.
make-input sharded m
glyd pack m packed -q
find m -type f | wc -l
glyd verify packed --json | grep '"files"'
glyd unpack packed back --json | grep '"files"'
glyd unpack packed back2 --salvage --json | grep '"files'
glyd inspect packed | sed -n '/shards:/,/tensors:/p'
sed -i 's/512/513/' packed/config.json
glyd inspect packed | grep config
