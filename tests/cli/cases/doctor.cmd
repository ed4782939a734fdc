# What it finds differs from machine to machine: the members do not, nor which products there are to judge.
glyd doctor --json | python3 -c '
import json, sys
found = json.load(sys.stdin)
print(sorted(found))
for verdict in found["verdicts"]:
    assert verdict["exact"] in (True, False, None) and verdict["runs"], verdict
    print(verdict["product"])
print(found["cpu"]["memory_available_bytes"] > 0)'
glyd doctor | grep -c '^version'
