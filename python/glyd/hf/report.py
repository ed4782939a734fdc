"""model.glyd_report(): what is packed, how it multiplies, how often it did."""

from dataclasses import dataclass, field

from . import products
from .modules import guard_casts, packed_modules
from .tensors import info_of


@dataclass(frozen=True)
class Report:
    document: dict = field(repr=False)

    def to_dict(self):
        return self.document

    def __str__(self):
        d = self.document
        lines = [
            f"glyd: {d['packed_modules']} modules packed in {d['packs']} packs{shared(d)}: "
            f"{d['packed_bytes']:,} bytes for {d['bf16_bytes']:,} of bf16 "
            f"({d['packed_bytes'] / max(d['bf16_bytes'], 1):.3f}, {d['bits']:.2f} bits a weight); "
            f"{d['other_bytes']:,} bytes unpacked",
            f"products: {'exact' if d['exact'] else 'free'} ({d['reason']}), on {d['device']}",
            "layouts: " + ", ".join(f"{name} {count}" for name, count in sorted(d["layouts"].items())),
        ]
        if d["decoded_at_load"]:
            lines.append("decoded at load: " + ", ".join(d["decoded_at_load"]))
        if d["blocks_differ"]:
            lines.append(f"decoded whole for each exact product: {len(d['blocks_differ'])} kinds of product")
        for shape, routes in d["routes"].items():
            found = [f"{route} at {spans(tokens)} tokens" if tokens else route for route, tokens in routes.items()]
            lines.append(f"  {shape}: {'; '.join(found)}")
        return "\n".join(lines)

    __repr__ = __str__


def shared(document):
    """Why there are fewer packs than modules."""
    return "".join(f", {name} sharing {other}'s" for name, other in document["shared"].items())


def spans(numbers):
    """1, 2, 3, 5 as "1-3, 5"."""
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def report(model):
    modules = packed_modules(model)
    if not modules:
        raise ValueError("this model has no packed modules: load it with glyd.from_pretrained")
    packs = {id(pack): pack for _, module in modules for _, pack in module.glyd_packs()}
    first, sharing = {}, {}
    for name, module in modules:
        for _, pack in module.glyd_packs():
            if first.setdefault(id(pack), name) != name:
                sharing[name] = first[id(pack)]
    layouts = {}
    for pack in packs.values():
        layouts[info_of(pack).layout] = layouts.get(info_of(pack).layout, 0) + 1
    everything = {id(t): t for t in [*model.parameters(), *model.buffers()]}
    state = getattr(model, "glyd_state", {})
    packed_bytes = sum(pack.numel() for pack in packs.values())
    bf16_bytes = sum(info_of(pack).bf16_bytes for pack in packs.values())
    return Report(
        {
            "packed_modules": len(modules),
            "packs": len(packs),
            "shared": sharing,
            "packed_bytes": packed_bytes,
            "bf16_bytes": bf16_bytes,
            "other_bytes": sum(t.numel() * t.element_size() for key, t in everything.items() if key not in packs),
            "layouts": layouts,
            "bits": 16 * packed_bytes / max(bf16_bytes, 1),
            "routes": state.get("routes", {}),
            "exact": all(module.glyd_exact for _, module in modules),
            "reason": state.get("reason", ""),
            "device": ", ".join(sorted({str(pack.device) for pack in packs.values()})),
            "decoded_at_load": list(state.get("decoded_at_load", [])),
            "blocks_differ": [str(kind) for kind in products.kinds_that_differ()],
            "calls": {name: module.glyd_count() for name, module in modules},
        }
    )


def install():
    """Gives transformers' models the method glyd_report()."""
    from transformers import PreTrainedModel

    PreTrainedModel.glyd_report = report
    guard_casts()
