# Every test that docs/codec.md names for a user's ask exists.
root=$SHARE/..
table=$(sed -n '/^## What users/,/^## Speed/p' "$root/docs/codec.md" | grep '^|')
for name in $(echo "$table" | grep -o '`codec-[a-z-]*`' | tr -d '`' | sort -u); do
  [ -e "$root/tests/cli/cases/$name.cmd" ] || echo "no such case: $name"
done
for name in $(echo "$table" | grep -oE '\b(Gives|Every|ARange|TheMemory)[A-Za-z0-9]*'); do
  grep -rq "$name" "$root/tests/unit/codec" || echo "no such test: $name"
done
for file in tests/python/test_codec.py tests/python/test_codec_file.py tests/crash/codec_file_test.cpp tests/unit/codec/large_test.cpp fuzz/fuzz_codec_roundtrip.cpp; do
  [ -e "$root/$file" ] || echo "no such file: $file"
done
echo "$table" | wc -l
