# A packed directory whose shard is a link to somewhere else.
make-input model m
glyd pack m packed -q
mv packed/glyd-00001-of-00001.safetensors elsewhere
ln -s ../elsewhere packed/glyd-00001-of-00001.safetensors
glyd verify packed
