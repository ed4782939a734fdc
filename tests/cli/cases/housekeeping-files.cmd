# What hubs, git and desktops add does not matter, and does not come back; other files do.
make-input model m
glyd pack m packed -q
mkdir -p packed/.cache/huggingface/download packed/.git/refs packed/tokenizer
touch packed/.gitattributes packed/.gitignore packed/.DS_Store packed/tokenizer/.DS_Store packed/.cache/huggingface/download/x.metadata
ln -s /etc/hostname packed/.git/refs/link
glyd verify packed
glyd verify packed --json | grep -A7 ignored
glyd unpack packed back -q
diff -r m back
# Where the source had them they are files like any other.
mkdir -p m/.git
echo one > m/.git/config
echo '*.safetensors filter=lfs' > m/.gitattributes
glyd pack m packed2 -q
echo two > packed2/.git/config
touch packed2/.git/index
glyd verify packed2 || echo "exit $?"
