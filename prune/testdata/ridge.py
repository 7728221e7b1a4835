"""Writes ridge.json: output maps solved by numpy.linalg.lstsq in float64, for TestRidgeLeastSquares (numpy 2.4.6)."""
import json
import pathlib

import numpy as np

rng = np.random.default_rng(1)
cases = []
for strength in (1e-13, 0.01, 1.0):
    for bias in (True, False):
        for kept in ([0, 1, 4, 5], [2, 3], []):
            n, d, rows = 6, 2, 24
            # Few decimals keep the file small. Go reads them as float32.
            x = np.round(rng.standard_normal((rows, 4)) @ rng.standard_normal((4, n)) + rng.standard_normal((rows, n)) / 2 + 1, 2)
            w, b = np.round(rng.standard_normal((d, n)), 2), np.round(rng.standard_normal(d), 2)
            x64, w64 = x.astype(np.float32).astype(float), w.astype(np.float32).astype(float)
            mean = x64.mean(0) if bias else np.zeros(n)
            y, a = (x64 - mean) @ w64.T, (x64 - mean)[:, kept]
            # min |a·w' − y|²/rows + λ|w' − w|², as least squares with a row more for each column
            penalty = strength * (a**2).mean() if kept else 0
            left = np.vstack([a / np.sqrt(rows), np.sqrt(penalty) * np.eye(len(kept))])
            right = np.vstack([y / np.sqrt(rows), np.sqrt(penalty) * w64[:, kept].T])
            solved = np.linalg.lstsq(left, right, rcond=None)[0].T
            weight = np.zeros((d, n))
            weight[:, kept] = solved
            cases.append({
                "strength": strength, "kept": [i in kept for i in range(n)], "inputs": x.ravel().tolist(),
                "weight": w.ravel().tolist(), "bias": b.tolist() if bias else None,
                "want_weight": np.round(weight, 8).ravel().tolist(),
                "want_bias": np.round(b + (w64 - weight) @ mean, 8).tolist() if bias else None,
            })
pathlib.Path(__file__).with_name("ridge.json").write_text(json.dumps(cases) + "\n")
