# Every whole unit in its place, the lost ranges named, zeros in between.
seq 200000 > text
glyd compress text --unit 128KiB -q
cp text.glyd bad.glyd
at=$(glyd list text.glyd --units --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["files"][0]["list"][3]["frame_offset"] + 100)')
make-input flip bad.glyd $at
glyd decompress --salvage bad.glyd -o rescued || echo "exit $?"
python3 -c '
text, found = open("text", "rb").read(), open("rescued", "rb").read()
assert len(text) == len(found)
lost = range(3 * 131072, 4 * 131072)
print(all(found[i] == (0 if i in lost else text[i]) for i in range(len(text))))'
glyd decompress --salvage bad.glyd -o - 2> /dev/null | cmp - rescued
cat bad.glyd | glyd decompress --salvage -o piped -q 2> /dev/null || cmp piped rescued
glyd decompress --salvage bad.glyd -o again --json 2> /dev/null | python3 -c 'import json, sys; f = json.load(sys.stdin)["files"][0]; print(f["complete"], f["recovered_bytes"], f["lost"])'
head -c $(($(stat -c %s text.glyd) / 2)) text.glyd > cut.glyd
glyd decompress --salvage cut.glyd -q 2> message || echo "exit $?"
cmp text cut 2>&1 | sed 's/after byte.*/after what was saved/'
grep -o 'cut.glyd: damaged' message
glyd decompress --salvage text.glyd -o whole -q && cmp whole text
glyd decompress --salvage text -o nothing || echo "exit $?"
glyd decompress --salvage text.glyd --rm || echo "exit $?"
ls
