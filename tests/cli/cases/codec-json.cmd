# One document each, whose members say what was done.
seq 1000 > text
seq 2000 > more
show() { python3 -c 'import json, sys; d = json.load(sys.stdin); print(sorted(d), [(f.get("source"), f.get("target"), f.get("content_bytes"), sorted(f)) for f in d["files"]])'; }
glyd compress text more --json | show
rm text more
glyd decompress text.glyd more.glyd --json | show
glyd test text.glyd more.glyd --json | show
glyd list text.glyd more.glyd --json | show
glyd list text.glyd --units --json | python3 -c 'import json, sys; print([(u["content_begin"], u["content_bytes"], u["frame_offset"]) for u in json.load(sys.stdin)["files"][0]["list"]])'
glyd test text.glyd missing.glyd --json || echo "exit $?"
