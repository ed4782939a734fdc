# What it finds differs from machine to machine: the members do not.
glyd doctor --json | python3 -c 'import json, sys; print(sorted(json.load(sys.stdin)))'
glyd doctor | grep -c '^version'
