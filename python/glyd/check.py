"""`python -m glyd.check MODEL`: proves on this machine what glyd promises of a model.

It loads the bf16 model with transformers and notes logits and greedy text; then it packs the model, every pack decoded
and compared, and asks for the same bits and the same text with exact=True; saves it, verifies every byte, loads it
again, and asks once more. Exit code 0: all of it holds; 1: something differs; others as the program's.
"""

import argparse
import gc
import json
import sys
import tempfile
from pathlib import Path

from ._errors import Error, NotFoundError

SEED = 20261130
DIFFERS = 1


def parser():
    top = argparse.ArgumentParser(
        prog="python -m glyd.check", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    top.add_argument("model", help="a bf16 or packed directory, or a repo")
    top.add_argument("--device", help="cuda:0 where there is one, else cpu; auto: over all GPUs")
    top.add_argument("--layout", default="auto", help="fast or small")
    top.add_argument("--batch", default="1,3", help="numbers of prompts at once")
    top.add_argument("--lengths", default="1,17,100", help="tokens of the prompts")
    top.add_argument("--tokens", type=int, default=64, help="greedy tokens of a text")
    top.add_argument("--scratch", help="a directory for the saved model, about 0.7 of bf16; the system's own if not given")
    top.add_argument("--json", action="store_true", help="one JSON document on stdout")
    return top


class Check:
    """What was compared: lines as they are found, and whether all held."""

    def __init__(self, quiet):
        self.lines, self.quiet = [], quiet

    def add(self, what, ok, detail=""):
        self.lines.append({"what": what, "ok": bool(ok), "detail": detail})
        if not self.quiet:
            print(f"{'ok     ' if ok else 'DIFFERS'}  {what}{f': {detail}' if detail else ''}", flush=True)

    @property
    def ok(self):
        return all(line["ok"] for line in self.lines)


class Probe:
    """The prompts, and what a model makes of them."""

    def __init__(self, config, batches, lengths, tokens):
        import torch

        text = config.get_text_config()
        most = getattr(text, "max_position_embeddings", None) or max(lengths) + tokens
        generator = torch.Generator().manual_seed(SEED)
        self.tokens = min(tokens, most - 1)
        self.prompts = {
            (batch, length): torch.randint(0, text.vocab_size, (batch, length), generator=generator)
            for batch in batches
            for length in lengths
            if length <= most
        }
        fitting = [length for _, length in self.prompts if length + self.tokens <= most]
        self.prompt_length = max(fitting, default=1)

    def logits(self, model):
        import torch

        with torch.no_grad():
            return {key: model(ids.to(model.device)).logits.cpu() for key, ids in self.prompts.items()}

    def texts(self, model):
        from .hf.attention import repeatable_attention

        with repeatable_attention():
            return self.greedy(model)

    def greedy(self, model):
        found = {}
        for (batch, length), ids in self.prompts.items():
            if length == self.prompt_length:
                ids = ids.to(model.device)
                options = {"max_new_tokens": self.tokens, "min_new_tokens": self.tokens, "do_sample": False}
                found[batch] = model.generate(ids, attention_mask=ids.new_ones(ids.shape), **options).cpu()
        return found

    def compare(self, check, model, logits, texts, which):
        import torch

        from .hf.tensors import same_bits

        for (batch, length), found in self.logits(model).items():
            expected = logits[batch, length]
            same = same_bits(found, expected)
            detail = "" if same else f"{int((found != expected).sum()):,} of {found.numel():,} values"
            check.add(f"{which}: logits, {batch} prompts of {length} tokens", same, detail)
        for batch, found in self.texts(model).items():
            check.add(f"{which}: {self.tokens} greedy tokens of {batch} texts", torch.equal(found, texts[batch]))


def free_memory():
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def reference(source, config, device, probe):
    """Logits and texts of transformers' own bf16 model."""
    import torch

    from .hf.loading import auto_class

    device_map = device if device == "auto" else {"": device}
    model = auto_class(config, False).from_pretrained(source, dtype=torch.bfloat16, device_map=device_map).eval()
    found = probe.logits(model), probe.texts(model)
    del model
    free_memory()
    return found


def run(arguments, scratch):
    from transformers import AutoConfig

    import glyd

    from .hf.loading import default_device, packed_by_glyd

    check = Check(arguments.json)
    device = arguments.device or default_device()
    source = arguments.model
    if packed_by_glyd(AutoConfig.from_pretrained(source)):
        glyd.verify(source)
        check.add("the packed directory: every sha256", True)
        glyd.unpack(source, scratch / "bf16")
        source = scratch / "bf16"
    config = AutoConfig.from_pretrained(source)
    probe = Probe(config, numbers(arguments.batch), numbers(arguments.lengths), arguments.tokens)
    logits, texts = reference(source, config, device, probe)

    options = {"device_map" if device == "auto" else "device": device, "exact": True}
    model = glyd.from_pretrained(arguments.model, layout=arguments.layout, verify=True, **options).eval()
    report = model.glyd_report()
    said = f"{report.to_dict()['packed_bytes']:,} bytes for {report.to_dict()['bf16_bytes']:,} of bf16"
    check.add("packed: every weight decodes to its bf16 bits", True, said)
    probe.compare(check, model, logits, texts, "packed")
    glyd.save_pretrained(model, scratch / "packed")
    del model
    free_memory()
    check.add("saved: every sha256", glyd.verify(scratch / "packed")["ok"])
    model = glyd.from_pretrained(scratch / "packed", **options).eval()
    probe.compare(check, model, logits, texts, "loaded again")
    return {"model": str(arguments.model), "device": str(device), "ok": check.ok, "checks": check.lines} | {
        "report": report.to_dict()
    }


def numbers(text):
    return [int(part) for part in text.split(",") if part]


def main(argv=None):
    arguments = parser().parse_args(argv)
    from .gpu.__main__ import EXIT_CODES

    try:
        with tempfile.TemporaryDirectory(dir=arguments.scratch, prefix="glyd-check-") as scratch:
            found = run(arguments, Path(scratch))
    except Error as error:
        print(f"glyd: {error}", file=sys.stderr)
        return EXIT_CODES.get(error.status, 1)
    except OSError as error:  # transformers found no such model
        print(f"glyd: {arguments.model}: {str(error).splitlines()[0]}", file=sys.stderr)
        return EXIT_CODES.get(NotFoundError.status, 1)
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print(f"{found['model']} on {found['device']}: {'all of it holds' if found['ok'] else 'SOMETHING DIFFERS'}")
    return 0 if found["ok"] else DIFFERS


if __name__ == "__main__":
    sys.exit(main())
