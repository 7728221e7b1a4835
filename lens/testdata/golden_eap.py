"""Writes edges_*.json and circuit_*.json: scores of edges, circuits and their faithfulness by EAP-IG, in float64.

EAP-IG is not on PyPI: get https://github.com/hannamw/EAP-IG at 795f560, and let it compute on the CPU:

    pip install -r lens/testdata/requirements_eap.txt     # another environment: TransformerLens 4 has not what it needs
    sed -i "s/device='cuda'/device='cpu'/" EAP-IG/src/eap/*.py
    PYTHONPATH=EAP-IG/src python lens/testdata/golden_eap.py            write the files; or the names of cases
    PYTHONPATH=EAP-IG/src python lens/testdata/golden_eap.py --check    compare only, to 1e-9; exit 1 on a difference

Texts are token ids, so no tokenizer adds a token at the beginning. Weights are as they are: not folded. (Folding moves
no number here: the differences of two texts and the gradients before a layer norm stay the same.)

Faithfulness, CPR and CMD are those of MIB (MIB_circuit_track/evaluation.py of https://github.com/hannamw/MIB-circuit-track
at b759df3), written again because that file needs another EAP-IG.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import warnings

warnings.filterwarnings("ignore")

import torch
from eap import attribute, evaluate, utils
from eap.graph import Graph
from transformer_lens import HookedTransformer, HookedTransformerConfig
from transformer_lens.pretrained import weight_conversions
from transformers import AutoModelForCausalLM

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
STEPS = 5
SHARES = (.001, .002, .005, .01, .02, .05, .1, .2, .5, 1)  # of the edges, as MIB takes them
torch.set_num_threads(1)


def ids_are_texts(model, inputs, max_length=None):
    tokens = torch.tensor(inputs)
    return tokens, torch.ones_like(tokens), torch.full((len(tokens),), tokens.shape[1]), tokens.shape[1]


attribute.tokenize_plus = evaluate.tokenize_plus = utils.tokenize_plus = ids_are_texts


def load(path):
    hf = AutoModelForCausalLM.from_pretrained(ROOT / path, dtype=torch.float64, attn_implementation="eager").eval()
    c = hf.config
    if c.model_type == "gpt2":
        more = dict(n_layers=c.n_layer, d_model=c.n_embd, n_ctx=c.n_positions, d_head=c.n_embd // c.n_head, n_heads=c.n_head, d_mlp=c.n_inner, act_fn="gelu_new",
                    eps=c.layer_norm_epsilon, normalization_type="LN")
        convert = weight_conversions.convert_gpt2_weights
    else:
        d = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        more = dict(n_layers=c.num_hidden_layers, d_model=c.hidden_size, n_ctx=c.max_position_embeddings, d_head=d, n_heads=c.num_attention_heads,
                    n_key_value_heads=c.num_key_value_heads, d_mlp=c.intermediate_size, act_fn="silu", eps=c.rms_norm_eps, normalization_type="RMS", final_rms=True,
                    gated_mlp=True, positional_embedding_type="rotary", rotary_dim=d, rotary_adjacent_pairs=False, rotary_base=int(c.rope_parameters["rope_theta"]),
                    ungroup_grouped_query_attention=True)
        convert = {"qwen2": weight_conversions.convert_qwen2_weights, "llama": weight_conversions.convert_llama_weights}[c.model_type]
    config = HookedTransformerConfig(d_vocab=c.vocab_size, dtype=torch.float64, device="cpu", original_architecture=c.architectures[0],
                                     use_attn_result=True, use_split_qkv_input=True, use_hook_mlp_in=True, **more)
    model = HookedTransformer(config, move_to_device=False)
    missing, unexpected = model.load_state_dict(convert(hf, config), strict=False)
    assert not unexpected and all(n.split(".")[-1] in ("mask", "IGNORE", "rotary_sin", "rotary_cos", "b_U") for n in missing), (missing, unexpected)
    return model.to(torch.float64).eval(), hf


def auroc(score, truth):
    """The share of pairs of a true and a false edge in which the true one has the larger score; equal ones count half."""
    true = torch.tensor([s for n, s in score.items() if n in truth])
    false = torch.tensor([s for n, s in score.items() if n not in truth])
    d = true[:, None] - false[None]
    return ((d > 0).double().mean() + (d == 0).double().mean() / 2).item()


def case(path, a, b, plus, minus, truth=None, sets=None, edges=True):
    model, hf = load(path)
    with torch.no_grad():
        for ids in (a, b):  # transformers computes norms and angles of Llama in float32
            worst = (model(torch.tensor([ids])) - hf(torch.tensor([ids])).logits).abs().max()
            assert worst < (1e-4 if hasattr(hf, "model") else 1e-9), worst
    metric = lambda logits, clean, lengths, label: (logits[:, -1, plus] - logits[:, -1, minus]).sum()
    data = {"ab": [([a], [b], None)], "ba": [([b], [a], None)]}
    result = {"by": "EAP-IG at 795f560", "versions": versions(), "model": path, "ids": {"a": a, "b": b}, "steps": STEPS,
              "metrics": {"difference": {"plus": plus, "minus": minus, "position": len(a) - 1}}}

    def graph(scores=None):
        g = Graph.from_model(model)
        g.scores, g.n = g.scores.double(), len(g.edges)
        if scores is not None:
            g.scores[:] = scores
        return g

    g = graph()
    result["cfg"] = dict(g.cfg)
    result["edges"] = list(g.edges)
    listed = lambda s: [s[e.matrix_index].item() for e in g.edges.values()]
    exact_of = lambda loader, how: attribute.get_scores_exact(model, graph(), loader, metric, intervention=how, quiet=True).clone()
    result["scores"], kept = {}, {}
    for direction, loader in data.items():
        found = {
            "exact": exact_of(loader, "patching"),
            "eap": attribute.get_scores_eap(model, graph(), loader, metric, quiet=True),
            "eap_ig": attribute.get_scores_eap_ig(model, graph(), loader, metric, steps=STEPS, quiet=True),
        }
        if edges:
            found["exact_zero"] = exact_of(loader, "zero")
            found["eap_zero"] = attribute.get_scores_eap(model, graph(), loader, metric, intervention="zero", quiet=True)
        kept[direction] = found
        result["scores"][direction] = {k: listed(v) for k, v in found.items()}
    K, H = getattr(model.cfg, "n_key_value_heads", None), model.cfg.n_heads
    if K:
        # Heads of keys as they are: the scores of the repeats summed, under the name of the head of keys.
        def grouped(scores):
            out = {}
            for name, s in zip(result["edges"], scores):
                if name.endswith(("<k>", "<v>")):
                    head, letter = name.rsplit(".h", 1)
                    name = f"{head}.h{int(letter[:-3]) // (H // K)}{letter[-3:]}"
                out[name] = out.get(name, 0.0) + s
            return out
        result["repeats"] = H // K
        result["grouped"] = {d: {k: grouped(v) for k, v in s.items()} for d, s in result["scores"].items()}
    if truth:
        named = {k: {n: abs(s) for n, s in zip(result["edges"], v)} for k, v in result["scores"]["ab"].items()}
        result["truth"] = {"edges": truth, "auroc": {k: auroc(v, truth) for k, v in named.items()}}
    if not edges:
        return result, None

    loader = data["ab"]
    value = lambda g, how="patching": evaluate.evaluate_graph(model, g, loader, metric, quiet=True, intervention=how).mean().item()
    clean = evaluate.evaluate_baseline(model, loader, metric, quiet=True).mean().item()
    def empty(how):
        g = graph()
        g.apply_topn(0, True)
        return value(g, how)
    inside = lambda g: [n for n, e in g.edges.items() if e.in_graph]
    result["circuits"] = {}
    for name, chosen in (sets or {}).items():
        row = {"edges": chosen}
        for how in ("patching", "zero"):
            g = graph()
            for n in chosen:
                g.edges[n].in_graph = True
            g.nodes_in_graph[:] = True
            v = value(g, how)
            row["after_prune"] = inside(g)
            row[how] = {"clean": clean, "empty": empty(how), "circuit": v, "faithfulness": (v - empty(how)) / (clean - empty(how))}
        result["circuits"][name] = row
    result["faithfulness"] = {}
    for name in ("exact", "eap", "eap_ig"):
        for absolute in (True, False):
            base, rows = empty("patching"), []
            for share in SHARES:
                g = graph(kept["ab"][name] if absolute else -kept["ab"][name])  # MIB scores a loss: the sign is the other
                count = int(share * len(g.edges))
                g.apply_topn(count, absolute, level="edge", prune=True)
                v = value(g)
                rows.append({"share": share, "count": count, "edges": inside(g), "weighted_edge_count": g.weighted_edge_count(), "circuit": v, "faithfulness": (v - base) / (clean - base)})
            area = lambda f: sum((q["share"] - p["share"]) * (f(p["faithfulness"]) + f(q["faithfulness"])) / 2 for p, q in zip(rows, rows[1:]))
            result["faithfulness"][f"{name}_{'absolute' if absolute else 'signed'}"] = {
                "clean": clean, "empty": base, "rows": rows, "cpr": area(lambda f: f), "cmd": area(lambda f: abs(1 - f)), "average": sum(r["faithfulness"] for r in rows) / len(rows)}
    g = graph(kept["ab"]["eap_ig"])
    g.apply_topn(20, True, level="edge", prune=True)
    return result, g


def versions():
    import importlib.metadata
    return {n: importlib.metadata.version(n) for n in ("torch", "transformers", "transformer-lens")}


CIRCUIT = ["input->a0.h0<v>", "input->a1.h1<q>", "a0.h0->a1.h1<k>", "input->a1.h1<v>", "a1.h1->logits"]
WHERE = ["input->a0.h0<q>", "input->a0.h0<k>"]  # positions, which both texts share


def induction():
    a, b = [0, 5, 9, 3, 12, 7, 14, 5, 9, 3, 12], [0, 8, 2, 15, 6, 11, 8, 2, 15, 6, 11]
    sets = {"induction": CIRCUIT, "with_positions": WHERE + CIRCUIT, "without_keys": [e for e in CIRCUIT if "<k>" not in e], "direct": ["a1.h1->logits"]}
    result = case("lens/testdata/induction", a, b, 7, 8, CIRCUIT, sets)
    return result


def trained():
    return case("lens/testdata/trained", [0, 5, 19, 3, 12, 27, 14, 8, 5, 19, 3, 12], [0, 30, 2, 15, 6, 21, 13, 9, 30, 2, 15, 6], 27, 21)


def grouped(path):
    return lambda: case(path, [1, 5, 19, 3, 12, 27, 14, 5, 19, 3, 12], [1, 30, 2, 15, 6, 21, 13, 30, 2, 15, 6], 27, 21, edges=False)


CASES = {"induction": induction, "trained": trained, "qwen2": grouped("models/testdata/decoders/qwen2"), "llama": grouped("models/testdata/decoders/smollm2")}


def compact(x):
    """Numbers in 12 digits, and tiny ones as 0: enough for every tolerance."""
    if isinstance(x, float):
        return 0.0 if abs(x) < 1e-13 else float(f"{x:.12g}")
    if isinstance(x, dict):
        return {k: compact(v) for k, v in x.items()}
    return [compact(v) for v in x] if isinstance(x, (list, tuple)) else x


def close(one, two, where=""):
    if isinstance(one, dict):
        assert one.keys() == two.keys(), (where, one.keys() ^ two.keys())
        for k in one:
            close(one[k], two[k], f"{where}.{k}")
    elif isinstance(one, list):
        assert len(one) == len(two), (where, len(one), len(two))
        for i, (x, y) in enumerate(zip(one, two)):
            close(x, y, f"{where}[{i}]")
    elif isinstance(one, float) or isinstance(two, float):
        assert abs(one - two) <= 1e-9 * max(1, abs(one)), (where, one, two)
    else:
        assert one == two, (where, one, two)


def main():
    check = "--check" in sys.argv
    for name in [n for n in sys.argv[1:] if n != "--check"] or list(CASES):
        result, graph = CASES[name]()
        result, path = compact(result), FOLDER / f"edges_{name}.json"
        if check:
            close(json.loads(path.read_text()), json.loads(json.dumps(result)), name)
        else:
            path.write_text(json.dumps(result, separators=(",", ":")) + "\n")
        print(name, path.stat().st_size, result.get("truth", {}).get("auroc"))
        if graph is not None:
            file = FOLDER / f"circuit_{name}.json"
            with tempfile.TemporaryDirectory() as folder:
                graph.to_json(f"{folder}/graph.json")
                text = Path(folder, "graph.json").read_text()
            if check:
                close(json.loads(file.read_text()), json.loads(text), file.name)
            else:
                file.write_text(text)


if __name__ == "__main__":
    main()
