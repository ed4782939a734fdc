# Names are somebody else's: none may steer the terminal.
python3 - <<'PY'
import json, struct
header = json.dumps({"\x1b[31mred\n": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}}).encode()
open("model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(4))
PY
glyd inspect model.safetensors
glyd inspect "$(printf 'no\033[2Jsuch\177')"
