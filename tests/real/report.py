"""One JSON line about a model that run.sh packed: bytes, bits a weight and bits over the floor, by layout."""

import json
import sys
from pathlib import Path

model, work = sys.argv[1], Path(sys.argv[2])
total = json.loads((work / f"{model}-sizes.json").read_text())["models"][0]
sums, carried = total["total"], total["carried"]
line = {"model": model, "matrices": len(total["matrices"]), "bf16_bytes": sums["bf16_bytes"], "carried_bytes": carried["bytes"],
        "carried_dtypes": carried["dtypes"], "floor_bits": sums["floor_bits"]}
for layout in ("fast", "small"):
    packed = json.loads((work / f"{model}-{layout}.json").read_text())
    line |= {f"{layout}_bits": sums[f"{layout}_bits"], f"{layout}_bytes": sums[f"{layout}_bytes"],
             f"{layout}_directory": [packed["source_bytes"], packed["target_bytes"]]}
    if line["matrices"]:
        line[f"{layout}_over_floor"] = round(sums[f"{layout}_bits"] - sums["floor_bits"], 4)
print(json.dumps({name: round(value, 4) if isinstance(value, float) else value for name, value in line.items()}))
