# Files whose size the system does not tell, and names that begin with a dash or are no UTF-8.
glyd compress /proc/version -o version.glyd -q
glyd cat version.glyd | cmp - /proc/version
echo dash > -dash
glyd compress -q -- -dash
glyd cat -- -dash.glyd
name=$(printf 'caf\351')
echo bytes > "$name"
glyd compress "$name" --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["files"]))'
glyd cat "$name.glyd"
