# One bit anywhere is found.
seq 60000 > text
glyd compress text --unit 128KiB -q
size=$(stat -c %s text.glyd)
for at in 0 4 7 19 24 40 1000 $((size / 3)) $((size / 2)) $((size - 40)) $((size - 16)) $((size - 1)); do
  cp text.glyd bad.glyd
  make-input flip bad.glyd $at
  glyd test bad.glyd 2> message && echo "not found: $at"
  grep -q 'bad.glyd' message || echo "not named: $at"
  glyd decompress bad.glyd -q 2> message && echo "not found: $at"
  [ ! -e bad ] || echo "left something: $at"
done
echo done
