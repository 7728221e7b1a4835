"""Writes circuits.json: composition and copying scores of heads by PyTorch in float64, from whole matrices (torch 2.15.0).

    python circuits.py
"""

import json
import pathlib

import torch

torch.manual_seed(1)
D, H, G, E, V, VOCAB = 23, 6, 3, 5, 7, 41


def random(*shape):
    return (torch.randn(*shape, dtype=torch.float64) * 8).round() / 8  # exact in float32


def layer(scaled, centred):
    return {"q": random(H * E, D), "k": random(G * E, D), "v": random(G * V, D), "out": random(D, H * V),
            "scale": random(D) if scaled else None, "centred": centred}


def circuits(l):
    """Returns W_QK and W_OV [D D] of each head."""
    norm = torch.eye(D, dtype=torch.float64)
    if l["centred"]:
        norm -= 1 / D
    written = norm  # every reader subtracts the mean
    if l["scale"] is not None:
        norm = torch.diag(l["scale"]) @ norm
    q, k, v = (l[x] @ norm for x in "qkv")
    for h in range(H):
        g = h // (H // G)
        wq, wk, wv = q[h * E:(h + 1) * E], k[g * E:(g + 1) * E], v[g * V:(g + 1) * V]
        yield wq.T @ wk, written @ l["out"][:, h * V:(h + 1) * V] @ wv


def copying(matrix):
    values = torch.linalg.eigvals(matrix)
    return (values.sum().real / values.abs().sum()).item()


def flat(x):
    return x if x is None or isinstance(x, bool) else x.flatten().tolist()


layers = [layer(True, True), layer(True, False), layer(False, False)]
embed, unembed = random(VOCAB, D), random(VOCAB, D)
f = torch.linalg.matrix_norm
found = []
for number, l in enumerate(layers):
    mine = list(circuits(l))
    found.append({name: flat(x) for name, x in l.items()} | {
        "own": [copying(ov) for _, ov in mine],
        "copying": [copying(unembed @ ov @ embed.T) for _, ov in mine],
        # of the heads of the layer before; the first layer is compared with itself
        "composition": [[[(f(m @ before) / f(m) / f(before)).item() for _, before in circuits(layers[max(0, number - 1)])]
                         for m in ((qk.T, qk, ov)[part] for qk, ov in mine)] for part in range(3)],
    })
path = pathlib.Path(__file__).with_name("circuits.json")
path.write_text(json.dumps({"embed": flat(embed), "unembed": flat(unembed), "layers": found}) + "\n")
