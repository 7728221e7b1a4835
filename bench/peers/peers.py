"""Measures another library on the work that `attn bench` measures.

    python peers.py torch|onnxruntime|ctranslate2|llama.cpp|openvino|tokenizers|transformers

A server on standard input and output: each line is a JSON object with op, b, h, g, lq, lk, e, v, width, causal, mask,
dropout, weights as `attn bench --json` prints them, threads, and time in seconds; it is answered by a line with ms_median,
ms_min, ms_max and form, which says what was run, or unsupported, or error. {"op": "version"} is answered by version,
or missing where the library is not installed, and {"op": "outputs"} with the directory of a model and ids by outputs,
the hidden states of an encoder or the logits of a decoder, so that the caller can check that both compute the same. So
a caller can take turns and pays for the imports once.

The module of a library has its version; operations, functions by the names of what they do, which take a Work and
return ways to do it: functions that do it once, by their names; where something comes before each of them, prepare;
and where they can be checked, outputs. Where there are several ways, each is tried shortly and the fastest is measured.
"""

import gc
import importlib
import json
import os
import re
import statistics
import sys
import time

SHORTEST = 100e-6  # seconds: shorter calls are timed several at a time
FEWEST = 5


class Unsupported(Exception):
    """The library cannot do the work, or not on a CPU."""


class Work:
    """A request with every field that an operation may read."""

    def __init__(self, request):
        self.b = self.h = self.g = self.lq = self.lk = self.e = self.v = self.width = 0
        self.causal, self.mask, self.dropout, self.weights = False, "none", 0.0, False
        self.bias, self.storage, self.rule, self.decay, self.file = False, "float32", "", "", ""
        self.__dict__.update(request)
        self.train = self.op.endswith("-train")
        self.base = self.op.removesuffix("-train")

    def lengths(self):
        """How many keys are not padding, for each sequence: as in package bench."""
        return [self.lk - b * self.lk // (2 * self.b) for b in range(self.b)]

    def seen(self, np):
        """Which keys a query may attend to, [B 1 Lq or 1 Lk], or None for all."""
        seen = None
        if self.mask == "padding":
            seen = np.arange(self.lk)[None, :] < np.array(self.lengths())[:, None]
            seen = seen[:, None, None, :]
        elif self.mask == "bool":
            seen = np.random.default_rng(3).integers(4, size=(self.b, 1, self.lq, self.lk)) > 0
            seen[..., 0] = True
        if self.causal and (seen is not None or self.lq != self.lk):
            # Libraries align a causal mask in their own ways unless it is square.
            triangle = np.tri(self.lq, self.lk, self.lk - self.lq, dtype=bool)
            seen = triangle[None, None] if seen is None else seen & triangle
        return seen


def timed(call, seconds):
    """Calls again and again, as bench.Measure in Go does, and returns the milliseconds of each sample.

    A form that can only be timed from within has a method times, which does it."""
    if hasattr(call, "times"):
        call.times(seconds / 5)
        return call.times(seconds)
    start, calls = time.perf_counter(), 0
    while calls < 2 or time.perf_counter() - start < seconds / 5:
        call()
        calls += 1
    start = time.perf_counter()
    call()
    batch = int(SHORTEST / max(time.perf_counter() - start, 1e-9)) + 1
    times = []
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    while len(times) < FEWEST or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        for _ in range(batch):
            call()
        times.append((time.perf_counter() - begin) * 1e3 / batch)
    gc.enable()
    return times


class Server:
    def __init__(self, peer):
        self.peer = peer
        self.key, self.form, self.call = None, None, None

    def prepare(self, request, seconds):
        """Keeps the last work ready, since a comparison comes back to it round after round."""
        key = json.dumps({k: v for k, v in request.items() if k != "time"}, sort_keys=True)
        if key == self.key:
            return
        self.key, self.call = None, None
        work = Work(request)
        if work.base not in self.peer.operations:
            raise Unsupported("no such operation here")
        if hasattr(self.peer, "prepare"):
            self.peer.prepare(work)
        forms = self.peer.operations[work.base](work)
        if wanted := os.environ.get("PEER_FORMS"):
            forms = {name: form for name, form in forms.items() if re.search(wanted, name)}
            if not forms:
                raise Unsupported(f"no form named {wanted}")
        if len(forms) > 1:
            tried = {}
            for name, call in forms.items():
                try:
                    tried[name] = min(timed(call, seconds / 5))
                except Exception as e:  # a kernel that is missing says so when it runs
                    print(f"{name}: {e}", file=sys.stderr)
            if not tried:
                raise Unsupported("every form failed")
            self.form = min(tried, key=tried.get)
        else:
            self.form = next(iter(forms))
        self.call, self.key = forms[self.form], key

    def answer(self, request):
        try:
            if request["op"] == "version":
                return {"version": self.peer.version}
            if request["op"] == "outputs":
                return {"outputs": [float(x) for x in self.peer.outputs(Work(request)).flat]}
            seconds = request.pop("time", 1.0)
            self.prepare(request, seconds)
            times = timed(self.call, seconds)
        except Unsupported as e:
            return {"unsupported": str(e)}
        except Exception as e:
            return {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        return {"ms_median": statistics.median(times), "ms_min": min(times), "ms_max": max(times), "form": self.form}


def main():
    names = {
        "torch": "torch_peer", "onnxruntime": "onnx_peer", "ctranslate2": "ctranslate2_peer", "llama.cpp": "llama_peer",
        "openvino": "openvino_peer", "tokenizers": "tokenizers_peer", "transformers": "transformers_peer",
    }  # fmt: skip
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        print("usage: python peers.py " + "|".join(names), file=sys.stderr)
        return 2
    answer = None
    try:
        answer = Server(importlib.import_module(names[sys.argv[1]])).answer
    except Exception as e:  # a compiled library that does not load raises its own error
        missing = {"missing": f"{type(e).__name__}: {e}".splitlines()[0]}
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)) if answer else missing), flush=True)
    return 0


if __name__ == "__main__":
    import peers  # by the name under which the other files import it, or there would be two of each class

    try:
        sys.exit(peers.main())
    except KeyboardInterrupt:
        sys.exit(130)
