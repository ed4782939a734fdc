"""Generates text from packed weights on the CPU and compares it with the bf16 model, token for token.

python examples/quickstart.py PACKED_DIRECTORY [--bf16 DIRECTORY] [--prompt TEXT] [--chat] [--tokens N]
"""

import argparse
import os
import time

os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

import glyd
import transformers


def encode(tokenizer, prompt, chat):
    if not chat:
        return tokenizer(prompt, return_tensors="pt").input_ids
    messages = [{"role": "user", "content": prompt}]
    return tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    ).input_ids


def generate(model, ids, tokens):
    start = time.perf_counter()
    out = model.generate(ids, max_new_tokens=tokens, do_sample=False)[0, ids.shape[1] :]
    return out, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("packed")
    parser.add_argument("--bf16")
    parser.add_argument("--prompt", default="The package manager")
    parser.add_argument("--chat", action="store_true", help="as a question to a chat model")
    parser.add_argument("--tokens", type=int, default=40)
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()

    tokenizer = transformers.AutoTokenizer.from_pretrained(options.packed)
    ids = encode(tokenizer, options.prompt, options.chat)
    model = glyd.from_pretrained(options.packed, device="cpu", exact=True)
    print(model.glyd_report())
    found, seconds = generate(model, ids, options.tokens)
    print(f"\n{options.prompt}\n  -> {tokenizer.decode(found, skip_special_tokens=True).strip()}")
    print(f"\npacked, exact: {len(found)} tokens in {seconds:.1f} s")
    glyd.set_exact(model, False)
    free, seconds = generate(model, ids, options.tokens)
    print(f"packed, free:  {len(free)} tokens in {seconds:.1f} s")
    if options.bf16:
        reference = transformers.AutoModelForCausalLM.from_pretrained(options.bf16)
        expected, seconds = generate(reference, ids, options.tokens)
        print(f"bf16:          {len(expected)} tokens in {seconds:.1f} s")
        same = expected.tolist() == found.tolist()
        print("exact tokens equal the bf16 model's: " + ("yes, all of them" if same else "NO"))
        if not same:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
