"""Runs the eight programs of this directory, and compares their numbers with attn's.

    ATTN_LESSONS=DIR go test -count=1 ./examples/torch
    ATTN_PIECES=DIR go test -count=1 -run TestAlone ./site
    python examples/torch/check.py DIR

1. Each program prints what its comments "# Output:" say.
2. Each piece that the lessons give to copy, which the test of ./site has written, runs alone and prints its part.
3. The functions of the lessons return the same as attn, with the inputs and parameters that
   lessons_test.go has written.
"""

import contextlib
import io
import os
import re
import runpy
import sys
import tempfile
import traceback
import warnings
from importlib import import_module
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).resolve().parent
PROGRAMS = "regression", "scores", "reverse", "shapes", "dates", "masks", "linear", "induction"
ENOUGH = 1e-5


def check(ok, what):
    if not ok:
        sys.exit(f"check: {what}")


def stated(text):
    """Returns what the comments below the regions of a program state as its output."""
    blocks = re.findall(r"^# lesson end\n# Output:\n((?:#.*\n)+)", text, re.MULTILINE)
    return re.sub("^# ?", "", "".join(blocks), flags=re.MULTILINE)


def run(path, want):
    """Runs a program as Python does, but in a fork of this process: PyTorch is imported once."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            warnings.simplefilter("error")
            failed = 1
            try:
                runpy.run_path(str(path), run_name="__main__")
                sys.stdout.flush()
                failed = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(failed)
        failed = os.waitpid(child, 0)[1]
        out.seek(0)
        err.seek(0)
        printed, problem = out.read(), err.read()
    check(not failed, f"{path.name}: {problem}")
    check(want, f"{path.name} states no output")
    check(printed == want, f"{path.name} prints\n{printed}but its comments state\n{want}")
    print(f"{path.name}: prints what its comments state, {len(want.splitlines())} lines")


def run_pieces(folder, name):
    """Runs what the page of a lesson gives to copy. A region without an output prints that of the next one."""
    parts = re.split("^# lesson: ", (HERE / f"{name}.py").read_text("utf-8"), flags=re.MULTILINE)
    for part, following in zip(parts[1:], parts[2:] + [""], strict=True):
        run(folder / f"{name}-{part.split()[0]}.py", stated(part) or stated(following))


def program(name):
    """Imports a program, and drops what it prints and sets."""
    with contextlib.redirect_stdout(io.StringIO()):
        module = import_module(name)
    torch.set_default_dtype(torch.float32)
    return module


class Numbers:
    """The tensors that main.go has written. Each has to be used."""

    def __init__(self, path):
        self.tensors = load_file(path)
        self.unused = set(self.tensors)

    def __call__(self, name):
        check(name in self.tensors, f"main.go has not written {name}")
        self.unused.discard(name)
        return self.tensors[name]

    def compare(self, name, got, like=None):
        """Compares a tensor relative to its largest number, or to that of another one."""
        want = self(name)
        check(got.shape == want.shape, f"{name} is {list(got.shape)}, attn has {list(want.shape)}")
        largest = self(like or name).abs().max()
        off = float((got.detach() - want).abs().max() / largest)
        check(off <= ENOUGH, f"{name} differs from attn's by {off:.1e}, more than {ENOUGH:.0e}")
        print(f"{name}: within {off:.1e}")

    def compare_output(self, name, out, weights):
        self.compare(f"{name}.out", out)
        self.compare(f"{name}.weights", weights)

    def joined(self, name, kind):
        """Returns the parameters of the three projections as nn.MultiheadAttention has them."""
        return torch.cat([self(f"{name}.{p}.{kind}") for p in "qkv"])

    def layer(self, name, heads, bias=False, **options):
        state = {}
        for kind in ("weight", "bias") if bias else ("weight",):
            state[f"in_proj_{kind}"] = self.joined(name, kind)
            state[f"out_proj.{kind}"] = self(f"{name}.out.{kind}")
        width = state["out_proj.weight"].shape[0]
        layer = nn.MultiheadAttention(width, heads, bias=bias, **options)
        layer.load_state_dict(state)
        return layer


def compare_regression(go, lesson):
    x, y, at = go("fixed.x"), go("fixed.y"), go("fixed.at")
    w = torch.ones(1, requires_grad=True)
    go.compare_output("fixed", *lesson.attend(at, x, y, w))
    lesson.learn(x, y, w)
    go.compare("learn.w", w)


def compare_scores(go, lesson):
    weights = "additive.wq", "additive.wk", "additive.wv", "bilinear.w"
    for layer, name in zip((lesson.a, lesson.b, lesson.c, lesson.w), weights, strict=True):
        layer.weight.data = go(name).view_as(layer.weight)
    q, k, v = go("attend.q"), go("attend.k"), go("attend.v")
    names = "dot", "scaled", "cosine", "gaussian", "additive", "bilinear"
    for name, score in zip(names, lesson.scores.values(), strict=True):
        go.compare_output(name, *lesson.attend(score, q, k, v))
    layer = go.layer("lengths", 3, batch_first=True)
    go.compare_output("lengths", *lesson.padded(layer, go("lengths.x"), torch.tensor([7, 4])))


def compare_shapes(go, lesson):
    layer = go.layer("shapes", 5, batch_first=True)
    padding = torch.arange(6) >= torch.tensor([[3], [2]])
    _, _, weights, _, out = lesson.multi_head(layer, go("shapes.x"), go("shapes.y"), padding)
    go.compare_output("shapes", out, weights)


def compare_dates(go, lesson):
    layer = go.layer("heads", 8, bias=True, batch_first=True)
    out, weights = lesson.multi_head(layer, go("heads.x"), torch.tensor([5, 3]))
    go.compare_output("heads", out, weights)
    out.square().mean().backward()
    for kind in "weight", "bias":
        for p, grad in zip("qkv", getattr(layer, f"in_proj_{kind}").grad.chunk(3), strict=True):
            # The gradient of k.bias is 0 up to rounding: it adds the same to all scores of a query.
            like = "heads.grad.q.bias" if p + kind == "kbias" else None
            go.compare(f"heads.grad.{p}.{kind}", grad, like)
        go.compare(f"heads.grad.out.{kind}", getattr(layer.out_proj, kind).grad)

    layer, x, target = go.layer("prune", 4, batch_first=True), go("prune.x"), go("prune.target")
    scores = lesson.importance(layer, lambda: F.mse_loss(layer(x, x, x)[0], target))
    go.compare("prune.scores", scores)
    go.compare("prune.out", lesson.keep(layer, [0, 2])(x))


def compare_masks(go, lesson):
    q, k, v = go("masks.q"), go("masks.k"), go("masks.v")
    packed = lesson.documents(torch.tensor([2, 5]), 6)
    same = torch.equal(packed.expand(1, 4, 6, 6), go("documents.weights") > 0)
    check(same, "documents: another mask than attn's")
    print("documents: the same mask")
    go.compare("documents.out", F.scaled_dot_product_attention(q, k, v, attn_mask=packed))
    weights = lesson.alibi(lesson.alibi_slopes(4), q, k)
    go.compare_output("alibi", weights @ v, weights)
    go.compare_output("first", *lesson.causal(go.layer("first", 4), go("first.x")))


def compare_cache(go, lesson):
    for layer, name in (lesson.q, "q"), (lesson.k, "k"), (lesson.v, "v"), (lesson.o, "out"):
        layer.weight.data = go(f"cache.{name}.weight")
    cache, lens, new = torch.zeros(2, 2, 9, 8), torch.tensor([0, 0]), torch.tensor([7, 4])
    read, lens = lesson.extend(go("cache.prompts"), cache, lens, new)
    read[1, 4:] = 0  # padding
    step, _ = lesson.extend(go("cache.token"), cache, lens, 1)
    go.compare("cache.read.out", read)
    go.compare("cache.step.out", step)
    go.compare("cache.whole.out", torch.cat([read[:1], step[:1]], 1))


def compare_linear(go, lesson):
    x, y, at = go("linear.x"), go("linear.y"), go("linear.at")
    sums = torch.zeros(21, 2)
    for k, v in zip(x[0], y[0], strict=True):
        sums = lesson.add(sums, k, v)
    go.compare("linear.state", sums)
    go.compare("linear.read", lesson.waves(at, 10) @ sums)
    q, k, v, decay, beta = (go(f"rules.{name}") for name in ("q", "k", "v", "decay", "beta"))
    rules = {"softmax": (), "linear": (), "gated": (decay,), "gated delta": (decay, beta)}
    for rule, options in rules.items():
        go.compare(f"rules.{rule}.out", lesson.attend(rule, q, k, v, *options))
        go.compare(f"rules.{rule}.matrix", lesson.matrix(rule, q, k, *options))


def compare_pair(go, lesson):
    model = lesson.Model()
    for name, p in model.named_parameters():
        p.data = go("pair." + name.replace("layers", "layer"))
    ids = go("pair.ids").long()
    go.compare("pair.logits", model(ids)[0])
    go.compare("pair.patched", model(ids, lesson.put(0, 1, go("pair.other"), 7))[0])
    go.compare("pair.silent", model(ids, lesson.put(1, 3, 0))[0])
    model.layers = nn.ModuleList(map(lesson.keep, model.layers, (1, 2)))
    go.compare("pair.small", model(ids)[0])


def main(folder):
    for name in PROGRAMS:
        run(HERE / f"{name}.py", stated((HERE / f"{name}.py").read_text("utf-8")))
        run_pieces(Path(folder), name)
    go = Numbers(Path(folder) / "lessons.safetensors")
    compare_regression(go, program("regression"))
    compare_scores(go, program("scores"))
    compare_shapes(go, program("shapes"))
    compare_dates(go, program("dates"))
    compare_masks(go, program("masks"))
    compare_cache(go, program("masks"))
    compare_linear(go, program("linear"))
    compare_pair(go, program("induction"))
    check(not go.unused, f"nothing is compared with {sorted(go.unused)}")
    print("all checks passed")


if __name__ == "__main__":
    main(sys.argv[1])
