# Any range of the content, across units and frames.
seq 200000 > text
glyd compress text --unit 128KiB -o one.glyd -q
cat one.glyd one.glyd > two.glyd
cat text text > twice
for range in 0:10 5:+7 131000:+200 1MiB: :3 1288890:1288899 1288000:1289999 :; do
  begin=${range%%:*}
  echo "$range: $(glyd cat two.glyd --range $range | md5sum | cut -c 1-8) $(python3 - "$range" <<'PY'
import hashlib, sys
units = {"1MiB": 1 << 20}
begin, end = sys.argv[1].split(":")
begin = units.get(begin) or int(begin or 0)
data = open("twice", "rb").read()
end = len(data) if not end else begin + int(end[1:]) if end[0] == "+" else int(end)
print(hashlib.md5(data[begin:end]).hexdigest()[:8])
PY
)"
done
glyd cat one.glyd --range 5000000:+1 || echo "exit $?"
glyd cat one.glyd --range 9-5 || echo "exit $?"
glyd cat one.glyd --range 9:5 || echo "exit $?"
cat one.glyd | glyd cat - --range 0:5 || echo "exit $?"
