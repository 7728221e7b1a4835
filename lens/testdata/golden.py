"""Writes golden_*.json: effects of interventions, first order, and direct readings, for the models of this folder and of models/testdata.

    pip install -r lens/testdata/requirements.txt
    python lens/testdata/golden.py                   write the files (a minute); or the names of cases
    python lens/testdata/golden.py --check           compare only, to 1e-9; exit 1 on a difference

Everything is computed in float64. For induction and trained the numbers are those of TransformerLens, with its weights as
they are (not folded) unless a name says so; the same numbers by hooks in plain transformers (taps.py) are compared with
them, and are written for the other families. README.md says what each name of a file means.
"""

import json
import math
import sys
from pathlib import Path

import taps

import torch
import torch.nn.functional as F
import transformers
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoModel

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
POSITIONED = ("head", "query", "key", "value", "pattern", "residual", "mlp")


class Lens:
    """A model of TransformerLens with the interface of taps.Taps."""

    def __init__(self, model, config):
        from transformer_lens.model_bridge import TransformerBridge

        self.model = TransformerBridge.boot_transformers(str(config), device="cpu", dtype=torch.float64, hf_model=model)
        self.layers = self.model.cfg.n_layers
        names = dict(head="attn.hook_z", query="attn.hook_q", key="attn.hook_k", value="attn.hook_v", pattern="attn.hook_pattern",
                     residual="hook_resid_pre", mlp="hook_mlp_out")
        self.names = {(part, l): f"blocks.{l}.{name}" for part, name in names.items() for l in range(self.layers)}
        self.names["residual", self.layers] = f"blocks.{self.layers - 1}.hook_resid_post"

    def run(self, ids, edits=None, keep=False, grad=False):
        kept, hooks = {}, []
        for (part, layer), name in self.names.items():
            turn = part in ("head", "query", "key", "value")  # [T H d] there
            edit = (edits or {}).get((part, layer))
            if edit is None and not keep:
                continue

            def hook(x, hook, part=part, layer=layer, turn=turn, edit=edit):
                if edit is not None:
                    x = edit(x[0].transpose(0, 1)).transpose(0, 1)[None] if turn else edit(x[0])[None]
                if keep:
                    if grad and x.requires_grad:
                        x.retain_grad()
                    kept[part, layer] = x
                return x

            hooks.append((name, hook))
        with torch.enable_grad() if grad else torch.no_grad():
            logits = self.model.run_with_hooks(torch.tensor([ids]), fwd_hooks=hooks)
        out = type("Out", (), {"logits": logits})
        if keep and not grad:
            kept = {k: x.transpose(1, 2) if k[0] in ("head", "query", "key", "value") else x for k, x in kept.items()}
        return (out, kept) if keep else out

    def of(self, key, x):
        return x.transpose(1, 2) if key[0] in ("head", "query", "key", "value") else x


def swap(value, heads=None, positions=None):
    """An edit that puts value in the place of heads and positions (rows of a pattern), or of all."""
    def edit(x):
        x, value_ = x.clone(), value.expand_as(x)
        if heads is None:
            at = (slice(None) if positions is None else positions,)
        else:
            at = (heads, slice(None) if positions is None else positions)
        x[at] = value_[at]
        return x
    return edit


def effects(model, layers, metrics, a, b, mean, more_a=None, more_b=None):
    """Exact effects by metric: its value with the intervention minus the value without.

    Zero and mean change the run on text a; patch puts what text a computed into the run on text b."""
    more = {"a": more_a or {}, "b": more_b or {}}
    ids, base, own = {"a": a, "b": b}, {}, {}
    read = lambda out, text: torch.stack([f(out, ids[text]) for f in metrics.values()]).double()
    for text in "ab":
        out, own[text] = model.run(ids[text], keep=True, **more[text])
        base[text] = read(out, text)

    def change(text, part, l, value, heads=None, positions=None):
        return read(model.run(ids[text], {(part, l): swap(value, heads, positions)}, **more[text]), text) - base[text]

    for (part, l), x in own["a"].items():
        assert not change("a", part, l, x[0]).any(), (part, l)  # the run's own values change nothing
    found = {"without": {text: base[text] for text in "ab"}}
    for part in POSITIONED:
        for what in ("zero", "mean", "patch"):
            if what != "patch" and part not in ("head", "mlp") or what == "mean" and (part != "head" or mean is None):
                continue
            whole, places, text = [], [], "b" if what == "patch" else "a"
            for l in range(layers[part]):
                x = own["a"][part, l][0]
                if what == "patch" and x.shape != own["b"][part, l][0].shape:
                    continue
                value = {"zero": torch.zeros(()), "mean": mean[l][:, None] if part == "head" and mean else None, "patch": x}[what]
                if part in ("residual", "mlp"):
                    if part == "mlp":
                        whole.append(change(text, part, l, value))
                    places.append([change(text, part, l, value, None, p) for p in range(len(x))])
                else:
                    whole.append([change(text, part, l, value, h) for h in range(len(x))])
                    places.append([[change(text, part, l, value, h, p) for p in range(x.shape[1])] for h in range(len(x))])
            tables = found.setdefault(what, {})
            if whole:
                tables[part] = whole
            tables[part + "_positions"] = places

    def of(x, m):
        if isinstance(x, dict):
            return {k: of(v, m) for k, v in x.items()}
        return [of(v, m) for v in x] if isinstance(x, list) else x[m].item()
    return {name: of(found, m) for m, name in enumerate(metrics)}


def first_order(model, layers, metric, a, b, mean, more_a=None, more_b=None):
    """Attribution: (put − own)·gradient of the metric, with the same texts and directions as effects().

    For queries and keys also through the softmax again (AtP*): (pattern with the put queries or keys − own pattern)·gradient
    of the pattern. Keys: all positions at once, and one position at a time (which do not sum to the former)."""
    more_a, more_b = more_a or {}, more_b or {}
    turned = getattr(model, "of", lambda key, x: x)
    def gradients(ids, more):
        out, kept = model.run(ids, keep=True, grad=True, **more)
        metric(out, ids).backward()
        grad = {k: turned(k, torch.zeros_like(x) if x.grad is None else x.grad).detach() for k, x in kept.items()}
        return {k: turned(k, x).detach() for k, x in kept.items()}, grad
    (x, gx), (y, gy) = gradients(a, more_a), gradients(b, more_b)
    result = {"zero": {}, "mean": {}, "patch": {}}
    def table(what, part, diff, g):
        places = (diff * g)[0].sum(-1)
        if part != "residual":
            result[what].setdefault(part, []).append(places.sum(-1).tolist())
        result[what].setdefault(part + "_positions", []).append(places.tolist())
    for part in POSITIONED:
        for l in range(layers[part]):
            key = part, l
            if key not in x:
                continue
            if x[key].shape == y[key].shape:
                table("patch", part, x[key] - y[key], gy[key])
            if part in ("head", "mlp"):
                table("zero", part, -x[key], gx[key])
            if part == "head" and mean is not None:
                table("mean", part, mean[l][None, :, None, :] - x[key], gx[key])
    softmax = {"query": [], "query_positions": [], "key": [], "key_positions": []}
    for l in range(layers["query"]):
        q, k, p, g = y["query", l][0], y["key", l][0], y["pattern", l][0], gy["pattern", l][0]
        qa, ka, scale, repeat = x["query", l][0], x["key", l][0], q.shape[-1] ** -0.5, q.shape[0] // k.shape[0]
        rep = lambda t: t.repeat_interleave(repeat, 0)
        def pattern(q, k):
            s = (q @ rep(k).transpose(-1, -2) * scale).masked_fill((p == 0) & ~torch.ones_like(p[0]).tril().bool(), -math.inf)
            return s.softmax(-1)
        assert (pattern(q, k) - p).abs().max() < 1e-12
        rows = ((pattern(qa, k) - p) * g).sum(-1)  # [H T]
        softmax["query"].append(rows.sum(-1).tolist())
        softmax["query_positions"].append(rows.tolist())
        of = lambda k: ((pattern(q, k) - p) * g).sum((-1, -2)).view(-1, repeat).sum(-1)  # [K]
        softmax["key"].append(of(ka).tolist())
        each = []
        for t in range(k.shape[1]):
            one = k.clone()
            one[:, t] = ka[:, t]
            each.append(of(one))
        softmax["key_positions"].append(torch.stack(each, -1).tolist())
    return {**{k: v for k, v in result.items() if v}, "softmax": softmax}


def means(model, corpus, layers):
    """One vector for each head [H d]: the mean of its output over all positions of all texts."""
    runs = [model.run(ids, keep=True)[1] for ids in corpus]
    return [torch.cat([turned_head(model, r, l) for r in runs], 1).mean(1) for l in range(layers["head"])]


def turned_head(model, kept, l):
    return kept["head", l][0]


def close(one, two, where="", within=1e-9):
    if isinstance(one, dict):
        assert one.keys() == two.keys(), (where, one.keys() ^ two.keys())
        for k in one:
            close(one[k], two[k], f"{where}.{k}", within)
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), (where, len(one), len(two))
        for i, (x, y) in enumerate(zip(one, two)):
            close(x, y, f"{where}[{i}]", within)
    elif isinstance(one, float) or isinstance(two, float):
        assert abs(one - two) <= within * max(1, abs(one)), (where, one, two)
    else:
        assert one == two, (where, one, two)


def readings(model, ids, plus, minus):
    """Direct readings by TransformerLens of the text ids; difference of the logits of plus and minus at the last position."""
    from transformer_lens import head_detector
    from transformer_lens.model_bridge import TransformerBridge

    raw = model.model
    L, H, T = raw.cfg.n_layers, raw.cfg.n_heads, len(ids)
    x = torch.tensor([ids])
    with torch.no_grad():
        logits, cache = raw.run_with_cache(x)
        lens = cache.logit_lens(positions=None, return_type="logits")
        stack = lens.values.reshape(L + 1, T, -1)
        close(stack[-1].tolist(), logits[0].tolist(), "lens")
        top = stack.topk(5, -1)
        result = {"lens": {"tokens": top.indices.tolist(), "logits": top.values.tolist()}}
        detectors = {}
        for name in ("previous_token", "duplicate_token", "induction"):
            shape = getattr(head_detector, f"get_{name}_head_detection_pattern")(x)
            detectors[name] = [[head_detector.compute_head_attention_similarity_score(
                cache["pattern", l][0, h], shape, exclude_bos=False, exclude_current_token=False, error_measure="mul")
                for h in range(H)] for l in range(L)]
        result["detectors"] = detectors
        result["sink"] = [cache["pattern", l][0, :, :, 0].mean(-1).tolist() for l in range(L)]
        result["composition"] = {m: raw.all_composition_scores(m).scores.nan_to_num(0).tolist() for m in "QKV"}

        def eigen(v, o, e, u):  # eigenvalues of E·V·O·U, of which only as many as a head has columns are not 0
            values = torch.linalg.eigvals(o @ u @ e @ v)
            return (values.real.sum() / values.abs().sum()).item() if values.abs().sum() > 1e-9 else 0.0
        copying = lambda m: [[eigen(m.W_V[l, h], m.W_O[l, h], m.W_E, m.W_U) for h in range(H)] for l in range(L)]
        result["copying"] = {"raw": copying(raw)}

        # Direct logit attribution. Plain: heads with their value biases, by hand.
        final = cache["resid_post", L - 1][0]
        norm = raw.original_model.transformer.ln_f
        scale = (final.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        towards = norm.weight * (raw.W_U[:, plus] - raw.W_U[:, minus])
        read = lambda part: ((part - part.mean(-1, keepdim=True)) / scale @ towards).tolist()
        heads = [[read(cache["z", l][0][:, h] @ raw.W_O[l, h]) for h in range(H)] for l in range(L)]
        mlps = [read(cache["mlp_out", l][0]) for l in range(L)]
        bias = [read(raw.blocks[l].attn.b_O.expand(T, -1)) for l in range(L)]
        embed, places = read(cache["embed"][0]), read(cache["pos_embed"][0])
        constant = (norm.bias @ (raw.W_U[:, plus] - raw.W_U[:, minus])).item()
        want = (logits[0, :, plus] - logits[0, :, minus]).tolist()
        for t in range(T):
            total = constant + embed[t] + places[t] + sum(sum(h[t] for h in heads[l]) + mlps[l][t] + bias[l][t] for l in range(L))
            assert abs(total - want[t]) < 1e-9
        result["direct"] = {"difference": want, "raw": {"head": heads, "mlp": mlps, "bias": bias, "embed": embed, "positions": places, "constant": constant}}

        # As TransformerLens folds: layer norms into weights, weights centred, value biases into the output bias. It
        # rounds to float32 on the way, so the numbers are by hand, and compared with its own to 1e-5.
        blocks = raw.original_model.transformer.h
        gain = lambda l, w: blocks[l].ln_1.weight[:, None] * w
        less = lambda w, axis: w - w.mean(axis, keepdim=True)
        W = {n: torch.stack([less(gain(l, getattr(raw, n)[l]), -2) for l in range(L)]) for n in ("W_Q", "W_K", "W_V")}
        W |= {"W_O": less(raw.W_O, -1), "W_E": less(raw.W_E, -1), "W_U": less(less(norm.weight[:, None] * raw.W_U, 0), -1)}
        values = torch.stack([raw.b_V[l] + blocks[l].ln_1.bias @ raw.W_V[l] for l in range(L)])  # [L H d]
        heads = [[read((cache["z", l][0][:, h] - values[l, h]) @ raw.W_O[l, h]) for h in range(H)] for l in range(L)]
        bias = read(sum(raw.blocks[l].attn.b_O + torch.einsum("hd,hde->e", values[l], raw.W_O[l]) for l in range(L)).expand(T, -1))
        result["direct"]["folded"] = {"head": heads, "mlp": mlps, "bias": bias, "embed": embed, "positions": places, "constant": constant}
        by_hand = type("Folded", (), W)
        result["copying"]["folded"] = copying(by_hand)
        ov, qk = W["W_V"] @ W["W_O"], W["W_Q"] @ W["W_K"].transpose(-1, -2)  # [L H D D]
        def composition(right):
            scores = torch.zeros(L, H, L, H, dtype=torch.float64)
            for l in range(L):
                for m in range(l + 1, L):
                    for h in range(H):
                        for i in range(H):
                            size = ov[l, h].norm() * right[m, i].norm()
                            if size > 0:
                                scores[l, h, m, i] = (ov[l, h] @ right[m, i]).norm() / size
            return scores.tolist()
        result["composition"]["folded"] = {"Q": composition(qk), "K": composition(qk.transpose(-1, -2)), "V": composition(ov)}

        again = AutoModelForCausalLM.from_pretrained(raw.path, dtype=torch.float64, attn_implementation="eager").eval()
        folded = TransformerBridge.boot_transformers(str(raw.path), device="cpu", dtype=torch.float64, hf_model=again)
        folded.enable_compatibility_mode(disable_warnings=True)
        _, cache = folded.run_with_cache(x)
        parts, labels = cache.get_full_resid_decomposition(expand_neurons=False, return_labels=True)
        close(cache.logit_attrs(parts, plus, minus)[:, 0].tolist(), [h for l in heads for h in l] + mlps + [embed, places, bias], "direct", 1e-5)
        close((folded.b_U[plus] - folded.b_U[minus]).item(), constant, "constant", 1e-5)
        close(copying(folded), result["copying"]["folded"], "copying", 1e-4)
        close({m: folded.all_composition_scores(m).scores.nan_to_num(0).tolist() for m in "QKV"}, result["composition"]["folded"], "composition", 1e-5)
    return result


def loss(out, ids):
    return F.cross_entropy(out.logits[0, :-1], torch.tensor(ids[1:]))


def versions(*names):
    import importlib.metadata
    return {n: importlib.metadata.version(n) for n in ("torch", "transformers", *names)}


def decoder(name, path, form, a, b, plus, minus, corpus, lens):
    load = lambda how: AutoModelForCausalLM.from_pretrained(ROOT / path, dtype=torch.float64, attn_implementation=how).eval()
    plain = form(load("taps"))
    c = plain.model.config
    layers = {p: c.num_hidden_layers + (p == "residual") for p in POSITIONED}
    metrics = {"difference": lambda out, ids: out.logits[0, -1, plus] - out.logits[0, -1, minus], "loss": loss}
    models = [plain]
    if lens:
        model = Lens(load("eager"), ROOT / path)
        model.model.path = ROOT / path
        models.insert(0, model)
    mean = [means(m, corpus, layers) for m in models]
    found = []
    for m, mu in zip(models, mean):
        found.append({
            "mean": [x.tolist() for x in mu],
            "effects": effects(m, layers, metrics, a, b, mu),
            "attribution": {k: first_order(m, layers, f, a, b, mu) for k, f in metrics.items()},
        })
    if lens:
        close(found[0], found[1])
    with torch.no_grad():
        logits = {k: plain.run(ids).logits[0, -1].tolist() for k, ids in (("a", a), ("b", b))}
    result = {
        "by": "TransformerLens" if lens else "hooks in transformers", "versions": versions(*["transformer-lens"] * lens), "model": path,
        "ids": {"a": a, "b": b}, "corpus": corpus,
        "metrics": {"difference": {"plus": plus, "minus": minus, "position": len(a) - 1}, "loss": "mean over positions 0 … T-2 of -log p(the token at the next position)"},
        "logits": logits, **found[0],
    }
    if lens:
        result["readings"] = readings(models[0], a, plus, minus)
    return result


def induction():
    corpus = [[0, 5, 9, 3, 12, 7, 14, 5, 9, 3, 12], [0, 1, 4, 1, 4, 1, 4, 1], [0, 10, 11, 2, 13, 10, 11, 2, 13, 10], [0, 6, 6, 15, 8]]
    return decoder("induction", "lens/testdata/induction", taps.gpt2, [0, 5, 9, 3, 12, 7, 14, 5, 9, 3, 12], [0, 8, 2, 15, 6, 11, 8, 2, 15, 6, 11], 7, 8, corpus, True)


def trained():
    a = [0, 5, 19, 3, 12, 27, 14, 8, 5, 19, 3, 12]
    b = [0, 30, 2, 15, 6, 21, 13, 9, 30, 2, 15, 6]
    corpus = [a, [0, 1, 4, 31, 22, 1, 4, 31, 22, 1], [0, 17, 11, 29, 10, 25, 17, 11, 29, 10, 25], [0, 20, 16, 7, 18, 23, 28]]
    return decoder("trained", "lens/testdata/trained", taps.gpt2, a, b, 27, 21, corpus, True)


def grouped(path):
    a, b = [1, 5, 19, 3, 12, 27, 14, 5, 19, 3, 12], [1, 30, 2, 15, 6, 21, 13, 30, 2, 15, 6]
    corpus = [a, [4, 22, 4, 9, 8], [0, 17, 11, 29, 10, 25, 17]]
    return lambda: decoder(path, path, taps.llama, a, b, 27, 21, corpus, False)


def bert():
    path = "models/testdata/bert"
    plain = taps.bert(AutoModel.from_pretrained(ROOT / path, dtype=torch.float64, attn_implementation="taps", add_pooling_layer=False))
    a, b, other = [1, 5, 19, 3, 12, 27, 14, 40], [2, 30, 7, 15, 6, 21, 13, 33], [9, 4, 25, 31, 8, 41]
    corpus = [a, other, [3, 38, 11, 22, 17, 10]]
    L = plain.model.config.num_hidden_layers
    layers = {p: L + (p == "residual") for p in POSITIONED}
    mu = means(plain, corpus, layers)
    mean_of = lambda out: out.last_hidden_state[0].mean(0)
    fixed = mean_of(plain.run(other)).detach()
    metrics = {"similarity": lambda out, ids: F.cosine_similarity(mean_of(out), fixed, dim=0), "state": lambda out, ids: out.last_hidden_state[0, 2, 4]}
    return {
        "by": "hooks in transformers", "versions": versions(), "model": path, "ids": {"a": a, "b": b, "other": other}, "corpus": corpus,
        "metrics": {"similarity": "cosine of the mean over positions of the last state, and the same of `other`", "state": "last state at position 2, column 4"},
        "mean": [x.tolist() for x in mu],
        "effects": effects(plain, layers, metrics, a, b, mu),
        "attribution": {k: first_order(plain, layers, f, a, b, mu) for k, f in metrics.items()},
    }


def bart():
    path = "models/testdata/seq2seq/bart"
    plain = taps.bart(AutoModelForSeq2SeqLM.from_pretrained(ROOT / path, dtype=torch.float64, attn_implementation="taps"))
    c = plain.model.config
    E, D = c.encoder_layers, c.decoder_layers
    source = {"a": [0, 5, 19, 3, 12, 27, 14, 2], "b": [0, 30, 7, 15, 6, 21, 13, 2]}
    target = {"a": [2, 9, 4, 25, 8], "b": [2, 11, 17, 22, 10]}
    layers = {p: E + 2 * D for p in ("head", "query", "key", "value", "pattern")} | {"residual": E + D, "mlp": E + D}
    more = {k: {"decoder_input_ids": torch.tensor([v])} for k, v in target.items()}
    def metric(out, ids):  # log of the probability of the target's tokens after the first
        t = target["a" if ids == source["a"] else "b"]
        return -F.cross_entropy(out.logits[0, :-1], torch.tensor(t[1:]), reduction="sum")
    runs = [plain.run(source[k], keep=True, **more[k])[1] for k in "ab"]
    mu = [torch.cat([r["head", l][0] for r in runs], 1).mean(1) for l in range(layers["head"])]
    return {
        "by": "hooks in transformers", "versions": versions(), "model": path, "ids": source, "target": target,
        "layers": {"attention": [f"encoder.{l}" for l in range(E)] + [f"decoder.{l}.self" for l in range(D)] + [f"decoder.{l}.cross" for l in range(D)],
                   "residual": [f"encoder.{l}" for l in range(E)] + [f"decoder.{l}" for l in range(D)]},
        "metrics": {"probability": "sum over positions 0 … T-2 of the target of log p(the token at the next position)"},
        "mean": [x.tolist() for x in mu],
        "effects": effects(plain, layers, {"probability": metric}, source["a"], source["b"], mu, more["a"], more["b"]),
    }


CASES = {"induction": induction, "trained": trained, "qwen2": grouped("models/testdata/decoders/qwen2"), "llama": grouped("models/testdata/decoders/smollm2"), "bert": bert, "bart": bart}


def compact(x):
    """Numbers in 12 digits, and tiny ones as 0: enough for every tolerance."""
    if isinstance(x, float):
        return 0.0 if abs(x) < 1e-13 else float(f"{x:.12g}")
    if isinstance(x, dict):
        return {k: compact(v) for k, v in x.items()}
    return [compact(v) for v in x] if isinstance(x, (list, tuple)) else x


def write(path, value):
    path.write_text(json.dumps(compact(value), separators=(",", ":"), ensure_ascii=False) + "\n")


def main():
    names = [n for n in sys.argv[1:] if n != "--check"] or list(CASES)
    for name in names:
        result, path = compact(CASES[name]()), FOLDER / f"golden_{name}.json"
        if "--check" in sys.argv:
            close(json.loads(path.read_text()), json.loads(json.dumps(result)), name)
        else:
            write(path, result)
        print(name, path.stat().st_size)


if __name__ == "__main__":
    main()
