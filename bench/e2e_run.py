"""What e2e.py does with one model: logits, greedy text, timed decode steps as CUDA graphs and eagerly, first tokens."""

import statistics
import sys
import time

import torch

WARM_UP = 3
PREFILL_RUNS = 5
HOST_CALLS = 300


class Decoding:
    """One batch being decoded with a static cache. Everything of a step lies in fixed memory, so it can be captured."""

    def __init__(self, model, prompt, most_tokens):
        from transformers import StaticCache

        self.model = model
        self.prompt = prompt
        device = prompt.device
        self.length = prompt.shape[1]
        self.cache = StaticCache(config=model.config, max_cache_len=most_tokens)
        self.ids = torch.zeros((prompt.shape[0], 1), dtype=torch.int64, device=device)
        self.position = torch.zeros((1, 1), dtype=torch.int64, device=device)
        self.places = torch.arange(most_tokens, device=device)
        self.graph = None
        with torch.no_grad():
            out = model(input_ids=prompt, past_key_values=self.cache, use_cache=True, logits_to_keep=1)
            self.first = out.logits[:, -1].argmax(-1, keepdim=True)
        self.rewind()

    def rewind(self):
        self.ids.copy_(self.first)
        self.position.fill_(self.length)
        for layer in self.cache.layers:
            if isinstance(layer.cumulative_length, torch.Tensor):
                layer.cumulative_length.fill_(self.length)
            else:
                layer.cumulative_length = self.length

    def step(self):
        mask = (self.places <= self.position).view(1, 1, 1, -1).expand(self.ids.shape[0], 1, 1, -1)
        out = self.model(
            input_ids=self.ids,
            attention_mask=mask,
            position_ids=self.position,
            past_key_values=self.cache,
            use_cache=True,
        )
        self.ids.copy_(out.logits[:, -1].argmax(-1, keepdim=True))
        self.position.add_(1)

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            for _ in range(WARM_UP):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.rewind()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph), torch.no_grad():
            self.step()
        self.rewind()

    @torch.no_grad()
    def run(self, steps):
        for _ in range(steps):
            if self.graph is not None:
                self.graph.replay()
            else:
                self.step()

    @torch.no_grad()
    def greedy(self, count):
        """[batch, count] tokens, the first from the prompt."""
        self.rewind()
        tokens = [self.ids.clone()]
        for _ in range(count - 1):
            self.run(1)
            tokens.append(self.ids.clone())
        return torch.cat(tokens, 1)

    def seconds_of(self, steps):
        self.rewind()
        self.run(WARM_UP)
        self.rewind()
        torch.cuda.synchronize()
        began = time.perf_counter()
        self.run(steps)
        torch.cuda.synchronize()
        return time.perf_counter() - began


def same_tokens(one, other):
    """How many tokens of every text are equal; what follows a first difference does not count."""
    return int((one == other).all(0).int().cumprod(0).sum())


class Runner:
    def __init__(self, model, arguments):
        from glyd.hf.modules import packed_modules

        self.model, self.arguments = model, arguments
        self.packed = packed_modules(model)
        self.vocabulary = model.config.get_text_config().vocab_size

    def prompt(self, batch, length):
        generator = torch.Generator().manual_seed(1000 * batch + length)
        return torch.randint(0, self.vocabulary, (batch, length), generator=generator).to(self.arguments.device)

    def prepare(self):
        """Packed and exact: checks the numbers of tokens that will be timed, as loading does for the small ones."""
        import glyd

        if self.packed and all(module.glyd_exact for _, module in self.packed):
            a = self.arguments
            began = time.perf_counter()
            counts = {*a.lengths, *a.prefill, *(batch * a.prompt for batch in a.batch), *a.batch}
            glyd.gpu.prepare(self.model, tokens=sorted(counts))
            print(f"  checks of {len(counts)} numbers of tokens: {time.perf_counter() - began:.2f} s", file=sys.stderr)

    def run(self):
        self.prepare()
        weights = {id(t): t.numel() * t.element_size() for t in [*self.model.parameters(), *self.model.buffers()]}
        return {
            "weights_bytes": sum(weights.values()),
            "logits": self.logits(),
            "decode": self.decode(),
            "prefill": {length: self.first_token(length) for length in self.arguments.prefill},
            "host_us": self.host_time(),
        }

    @torch.no_grad()
    def logits(self):
        found = {}
        shapes = [(1, length) for length in self.arguments.lengths]
        shapes += [(batch, self.arguments.prompt) for batch in self.arguments.batch if batch != 1]
        for batch, length in shapes:
            found[batch, length] = self.model(self.prompt(batch, length)).logits.cpu()
        return found

    def decode(self):
        found = {}
        a = self.arguments
        for mode in a.mode.split(","):
            for batch in a.batch:
                known = found.get(("graph", batch))
                # An eager bf16 step runs the kernels that its graph replays: its text is known.
                text = {"tokens": known["tokens"]} if known and not self.packed else self.text(mode, batch)
                found[mode, batch] = text | self.timed(mode, batch)
        return found

    def decoding(self, mode, batch):
        a = self.arguments
        made = Decoding(self.model, self.prompt(batch, a.prompt), a.prompt + max(a.tokens, a.steps) + WARM_UP + 1)
        if mode == "graph":
            made.capture()
        return made

    def text(self, mode, batch):
        """Greedy tokens with attention that repeats itself, and whether the default attention does."""
        from glyd.hf.attention import repeatable_attention

        count = self.arguments.tokens
        with repeatable_attention():
            found = {"tokens": self.decoding(mode, batch).greedy(count).cpu()}
        if mode == "graph" and not self.packed:
            decoding = self.decoding(mode, batch)
            found["repeats"] = same_tokens(decoding.greedy(count), decoding.greedy(count))
        return found

    def timed(self, mode, batch):
        release()
        torch.cuda.reset_peak_memory_stats()
        decoding = self.decoding(mode, batch)
        steps = self.arguments.steps if mode == "graph" else max(8, self.arguments.steps // 4)
        seconds = min(decoding.seconds_of(steps) for _ in range(2))
        found = {"tokens_per_s": batch * steps / seconds, "peak_bytes": torch.cuda.max_memory_allocated()}
        print(f"  {mode} batch {batch}: {batch * steps / seconds:.1f} tokens/s", file=sys.stderr)
        if self.arguments.profile and mode == "graph":
            profile(decoding, self.arguments.profile)
        return found

    @torch.no_grad()
    def first_token(self, length):
        ids = self.prompt(1, length)
        times = []
        for _ in range(PREFILL_RUNS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            self.model(ids, use_cache=True, logits_to_keep=1).logits[:, -1].argmax(-1).item()
            times.append(time.perf_counter() - began)
        return statistics.median(times[1:])

    @torch.no_grad()
    def host_time(self):
        """Microseconds of the host for the products of one layer at one token: calls that are queued, not waited for."""
        layer = self.model.model.layers[0]
        linears = [m for m in layer.modules() if isinstance(m, torch.nn.Linear)]
        inputs = [torch.ones((1, 1, m.in_features), dtype=torch.bfloat16, device=self.arguments.device) for m in linears]
        best = float("inf")
        for _ in range(5):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(HOST_CALLS // len(linears)):
                for linear, x in zip(linears, inputs, strict=True):
                    linear(x)
            best = min(best, (time.perf_counter() - began) / (HOST_CALLS // len(linears)))
        torch.cuda.synchronize()
        return best * 1e6


def release():
    """Lets go of what earlier measurements left: torch keeps 32 MiB for cuBLAS for every stream it was ever called on."""
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()


def profile(decoding, count):
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as trace

    decoding.rewind()
    with trace(activities=[ProfilerActivity.CUDA]) as found:
        decoding.run(4)
        torch.cuda.synchronize()
    print(found.key_averages().table(sort_by="cuda_time_total", row_limit=count), file=sys.stderr)
