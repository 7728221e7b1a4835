"""Checks the exercises in PyTorch, and says which mistake a wrong answer comes from.

    python examples/exercises/check.py 4           # your code in shapes/shapes.py
    python examples/exercises/check.py --mistakes  # the solutions, and typical mistakes

The numbers are those of the lessons. With --mistakes, each solution is compared with PyTorch or a
stated result, and each mistake must be named.
"""

import sys
from importlib import import_module
from pathlib import Path

import torch
from torch.nn import functional as F

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)


def kernel(at, x, y, w, score=lambda d: -(d**2) / 2, weights=lambda s: s.softmax(-1)):
    return weights(score(w * (at[:, None] - x))) @ y


def regression():
    case = torch.linspace(0, 5, 7), 5 * torch.rand(11), torch.randn(11), torch.tensor(1.5)

    def with_score(score):
        return lambda *a: kernel(*a, score=score)

    def solved(at, x, y, w):
        return kernel(at, x, y, w)

    q, k, v = (a[None, :, None] for a in case[:3])
    distance = -((case[3] * (q - k.mT)) ** 2) / 2
    zero = torch.zeros_like(q)
    expected = F.scaled_dot_product_attention(zero, torch.zeros_like(k), v, attn_mask=distance)
    return case, solved, expected[0, :, 0], {
        "the factor ½ of the score is missing": with_score(lambda d: -(d**2)),
        "the distance is not squared": with_score(lambda d: -d.abs() / 2),
        "the sign of the score is wrong: far observations have the most weight": with_score(lambda d: d**2 / 2),
        "w is not squared with the distance": lambda at, x, y, w: kernel(at, x, y, w.sqrt()),
        "weights are not divided by their sum": lambda *a: kernel(*a, weights=torch.exp),
        "the softmax runs over the queries: queries and keys are exchanged": lambda *a: kernel(*a, weights=lambda s: s.softmax(0)),
        "keys and values are exchanged: the query is compared with the places x": lambda at, x, y, w: kernel(at, y, x, w),
        "w is not used: the kernel always has the width 1": lambda at, x, y, w: kernel(at, x, y, 1),
    }


def scores():
    case = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2), 3
    hidden = torch.arange(5) >= case[3]

    def attend(q, k, v, valid, scale=1 / 2, fill=-torch.inf, hide=hidden, dim=-1):
        return (q @ k.mT * scale).masked_fill(hide, fill).softmax(dim) @ v

    def after(q, k, v, valid):
        return (q @ k.mT / 2).softmax(-1).masked_fill(hidden, 0) @ v

    return case, attend, F.scaled_dot_product_attention(*case[:3], attn_mask=~hidden), {
        "the scale is forgotten: divide the scores by √E": lambda *a: attend(*a, scale=1),
        "the scores are divided by E, not by √E": lambda *a: attend(*a, scale=1 / 4),
        "the scores are multiplied by √E": lambda *a: attend(*a, scale=2),
        "the mask is applied after the softmax: the weights no longer sum to 1": after,
        "masked scores are 0 instead of −∞: padding has a weight": lambda *a: attend(*a, fill=0),
        "nothing is masked": lambda *a: attend(*a, hide=hidden & False),
        "the wrong keys are masked: keys from valid on are padding": lambda *a: attend(*a, hide=~hidden),
        "the softmax runs over the queries: queries and keys are exchanged": lambda *a: attend(*a, dim=0, fill=-1e30),
    }


def reverse():
    case = torch.tensor([[5, 4, 3, 2], [7, 6, 2, 0]]), 1

    def solved(targets, begin):
        return F.pad(targets[:, :-1], (1, 0), value=begin)

    return case, solved, torch.tensor([[1, 5, 4, 3], [1, 7, 6, 2]]), {
        "nothing is shifted: the decoder reads the token that it has to write": lambda t, b: t,
        "shifted the wrong way: the decoder reads the token after the one that it has to write": lambda t, b: F.pad(t[:, 1:], (0, 1), value=b),
        "begin is missing: the first token is 0": lambda t, b: F.pad(t[:, :-1], (1, 0)),
        "the last token is not dropped: the rows are one longer": lambda t, b: F.pad(t, (1, 0), value=b),
        "the last token comes first: rolled instead of shifted": lambda t, b: t.roll(1, -1),
        "the first token is overwritten by begin instead of moved": lambda t, b: F.pad(t[:, 1:], (1, 0), value=b),
    }


def shapes():
    case = torch.arange(24.0).view(3, 8), 2

    def solved(x, heads):
        return x.unflatten(-1, (heads, -1)).transpose(0, 1)

    expected = torch.stack(case[0].chunk(2, -1))
    return case, solved, expected, {
        "a reshape without a transpose: a head mixes positions. Split D first, then move the axes": lambda x, h: x.reshape(h, len(x), -1),
        "heads are split along the wrong axis: D is read as E × H instead of H × E": lambda x, h: x.unflatten(-1, (-1, h)).permute(2, 0, 1),
        "the axes are not moved: the result is [L H E]": lambda x, h: x.unflatten(-1, (h, -1)),
        "positions and elements are exchanged: the result is [H E L]": lambda x, h: solved(x, h).mT,
        "the axes are in the opposite order: [E H L]": lambda x, h: x.unflatten(-1, (h, -1)).permute(2, 1, 0),
        "the order of the heads is reversed": lambda x, h: solved(x, h).flip(0),
    }


def dates():
    # Without head 1 the loss falls; heads 0 and 2 can replace one another.
    def loss(on):
        missing = [not h for h in on]
        return 0.3 + 0.22 * missing[0] - 0.09 * missing[1] + 0.03 * missing[2] + 0.6 * missing[3] + 0.5 * (missing[0] and missing[2])

    def without(heads, *off):
        return [h not in off for h in range(heads)]

    def sorted_by(score):
        return lambda heads, loss: sorted(range(heads), key=lambda h: score(heads, loss, h))

    def importance(heads, loss, h):
        return loss(without(heads, h)) - loss(without(heads))

    def not_put_back(heads, loss, h):
        return loss(without(heads, *range(h + 1))) - loss(without(heads, *range(h)))

    return (4, loss), sorted_by(importance), [1, 2, 0, 3], {
        "the most important head is first: the sign is wrong": sorted_by(lambda *a: -importance(*a)),
        "importance is no absolute value: a head without which the loss falls is the first to go": sorted_by(lambda *a: abs(importance(*a))),
        "heads are not put back before the next one is measured": sorted_by(not_put_back),
        "each head is measured alone, without the others": sorted_by(lambda n, loss, h: loss([i == h for i in range(n)])),
        "heads are counted from 0": lambda *a: [h + 1 for h in sorted_by(importance)(*a)],
        "this is the place of each head in the order, not the heads in order": lambda *a: [[1, 2, 0, 3].index(h) for h in range(4)],
    }


def masks():
    case = 7, 2, [2, 7]

    def mask(n, left, ends, see=lambda i, j, left: (j <= i) & (j >= i - left), packed=True):
        i, j = torch.arange(n)[:, None], torch.arange(n)
        document = torch.bucketize(torch.arange(n), torch.tensor(ends), right=True)
        return see(i, j, left) & ((document[:, None] == document) | (not packed))

    rows = ["1......", "11.....", "..1....", "..11...", "..111..", "...111.", "....111"]
    return case, mask, torch.tensor([[c == "1" for c in row] for row in rows]), {
        "the documents are forgotten": lambda *a: mask(*a, packed=False),
        "the window is forgotten: at most left keys before its own": lambda *a: mask(*a, see=lambda i, j, left: j <= i),
        "the mask is not causal: later keys are visible": lambda *a: mask(*a, see=lambda i, j, left: (i - j).abs() <= left),
        "a query sees its own key, too: j ≤ i, not j < i": lambda *a: mask(*a, see=lambda i, j, left: (j < i) & (j >= i - left)),
        "the window is too small: left keys before its own, and its own": lambda *a: mask(*a, see=lambda i, j, left: (j <= i) & (j > i - left)),
        "the window is too large: left keys before its own": lambda *a: mask(*a, see=lambda i, j, left: (j <= i) & (j >= i - left - 1)),
        "queries and keys are exchanged": lambda *a: mask(*a).mT,
        "true and false are exchanged: true means that a key is visible": lambda *a: ~mask(*a),
    }


def minilm():
    def pattern(offset):  # a head whose weights are mostly on one key
        i = torch.arange(5)
        return 0.6 * F.one_hot((i + offset).clamp(0, 4), 5) + 0.08

    first = 0.6 * F.one_hot(torch.zeros(5, dtype=torch.long), 5) + 0.08
    almost = pattern(-1)
    almost[0] = torch.tensor([0.08, 0.08, 0.08, 0.08, 0.68])
    weights = torch.stack([torch.stack([pattern(0), pattern(1), first]), torch.stack([pattern(2), pattern(0), almost])])

    def most(weights, offset=-1):
        mean = weights.diagonal(offset, -2, -1).mean(-1)
        return list(divmod(int(mean.argmax()), mean.shape[1]))

    return (weights,), most, [1, 2], {
        "this head attends to the next token: queries and keys are exchanged": lambda w: most(w, 1),
        "this head attends to the token itself": lambda w: most(w, 0),
        "this head attends to the first token: a sink": lambda w: list(divmod(int(w[..., 0].mean(-1).argmax()), 3)),
        "layer and head are exchanged": lambda w: most(w)[::-1],
        "this is the number of the head among all, without its layer": lambda w: [0, 5],
    }


def linear():
    case = torch.randn(4, 3), F.normalize(torch.randn(4, 3), dim=-1), torch.randn(4, 2), -torch.rand(4), torch.rand(4)

    def delta(q, k, v, decay, beta, adds=False, late=False, stale=False, early=False, factor=torch.exp):
        state, out = torch.zeros(3, 2), []
        for t in range(4):
            now = state if late else factor(decay[t]) * state
            known = 0 if adds else k[t] @ (state if stale else now)
            state = now + k[t].outer(beta[t] * (v[t] - known))
            state = factor(decay[t]) * state if late else state
            out.append(q[t] @ (now if early else state))
        return torch.stack(out)

    def of_matrices(q, k, v, decay, beta):
        state, out = torch.zeros(3, 2), []
        for t in range(4):
            state = decay[t].exp() * (torch.eye(3) - beta[t] * k[t].outer(k[t])) @ state + beta[t] * k[t].outer(v[t])
            out.append(state.mT @ q[t])
        return torch.stack(out)

    return case, delta, of_matrices(*case), {
        "what the key reads is not subtracted: the value is added, not put in its place": lambda *a: delta(*a, adds=True),
        "the state shrinks after the token is written: it has to shrink before": lambda *a: delta(*a, late=True),
        "the key reads the state before it shrinks": lambda *a: delta(*a, stale=True),
        "beta multiplies the key: it is a share of the difference between the value and what the key reads": lambda q, k, v, g, b: delta(q, b[:, None] * k, v, g, b / b),
        "the query reads before the token is written": lambda *a: delta(*a, early=True),
        "the decays are forgotten": lambda *a: delta(*a, factor=torch.ones_like),
        "the factor is exp(decay), not decay": lambda *a: delta(*a, factor=torch.clone),
        "beta is forgotten": lambda q, k, v, g, b: delta(q, k, v, g, b / b),
        "the outputs are scaled by 1/√E": lambda *a: delta(*a) / 3**0.5,
        "queries and keys are exchanged": lambda q, k, *a: delta(k, q, *a),
    }


def induction():
    # What a patch restores in B, and what it destroys in A. Head 1 matters at position 2.
    shares = {
        "B": torch.tensor([[-2, 1, 4, 2], [2, -1, 112, 8], [1, -4, 3, 16]]) / 128,
        "A": torch.tensor([[1, 2, 32, 1], [2, 1, 64, 4], [1, 4, 2, 32]]) / 128,
    }

    def loss(sequence, patched=()):
        share = sum(shares[sequence][head, position].item() for head, position in patched)
        return 2.25 - 2 * share if sequence == "B" else 0.25 + 2 * share

    def each(share):
        def table(heads, positions, loss):
            return torch.tensor([[share(h, p, heads, positions, loss) for p in range(positions)] for h in range(heads)])

        return table

    def restores(patches):
        return each(lambda h, p, heads, positions, loss: (loss("B") - loss("B", patches(h, p, heads, positions))) / (loss("B") - loss("A")))

    solved = restores(lambda h, p, *_: [(h, p)])
    every = [(h, p) for h in range(3) for p in range(4)]
    return (3, 4, loss), solved, shares["B"], {
        "the sign is wrong: a patch that lowers the loss restores something": lambda *a: -solved(*a),
        "the wrong sequence is patched: what heads return in A belongs into B": each(lambda h, p, _, __, loss: (loss("A", [(h, p)]) - loss("A")) / (loss("B") - loss("A"))),
        "all heads of the layer are patched, not one": restores(lambda h, p, heads, _: [(i, p) for i in range(heads)]),
        "the head is patched at all positions, not at one": restores(lambda h, p, _, positions: [(h, i) for i in range(positions)]),
        "earlier patches are not taken back": restores(lambda h, p, *_: every[: every.index((h, p)) + 1]),
        "this is the decrease in loss, not a share of the difference between B and A": each(lambda h, p, _, __, loss: loss("B") - loss("B", [(h, p)])),
        "this is a share of the loss of B: A has a loss, too": each(lambda h, p, _, __, loss: 1 - loss("B", [(h, p)]) / loss("B")),
        "this is the share that is left, not the one that is restored": lambda *a: 1 - solved(*a),
        "positions come first: the result is [positions heads]": lambda *a: solved(*a).mT,
    }


EXERCISES = regression, scores, reverse, shapes, dates, masks, minilm, linear, induction


def same(got, want):
    if isinstance(want, torch.Tensor):
        want_type = isinstance(got, torch.Tensor) and got.shape == want.shape
        return want_type and torch.allclose(got.double(), want.double(), atol=1e-6)
    return list(got) == want if isinstance(got, (list, tuple)) else False


def wrong(got, want, case, mistakes):
    """Names the mistake of an answer, None if it is right."""
    if same(got, want):
        return None
    for what, mistake in mistakes.items():
        if same(got, mistake(*case)):
            return what
    return f"got\n{got}\nwant\n{want}"


def main(argument):
    if argument == "--mistakes":
        for exercise in EXERCISES:
            case, solved, want, mistakes = exercise()
            assert same(solved(*case), want), f"{exercise.__name__}: the solution is wrong"
            assert len(mistakes) >= 4
            for what, mistake in mistakes.items():
                named = wrong(mistake(*case), want, case, mistakes)
                assert named == what, f"{exercise.__name__}: {what!r} is called {named!r}"
            print(f"{exercise.__name__}: {len(mistakes)} mistakes are named")
        return
    if not argument.isdigit() or not 1 <= int(argument) <= len(EXERCISES):
        sys.exit(f"check: lesson {argument!r}, want 1 to {len(EXERCISES)}")
    exercise = EXERCISES[int(argument) - 1]
    name = exercise.__name__
    sys.path.insert(0, str(Path(__file__).resolve().parent / name))
    code = import_module(name)
    function = next(f for f in vars(code).values() if getattr(f, "__module__", "") == name)
    case, _, want, mistakes = exercise()
    got = function(*case)
    if got is None:
        sys.exit(f"{name}.{function.__name__} is empty: fill it in")
    what = wrong(got, want, case, mistakes)
    if what:
        sys.exit(f"wrong: {what}")
    print("right")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) == 2 else "")
