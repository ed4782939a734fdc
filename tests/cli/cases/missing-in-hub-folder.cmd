# The folder of a cached repo is no model: the snapshot in it is.
make-input hub-cache cache
repo=$(dirname "$(find cache -name snapshots | head -1)")
glyd pack "$repo" out || echo "exit $?"
