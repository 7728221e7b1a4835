"""Runs the ONNX files of attn with ONNX Runtime.

    python onnx_check.py CASES [ATTN [MODEL...]]

CASES is a folder that the Go tests have written. Every model.onnx in it is checked by
onnx.checker and run by ONNX Runtime on the inputs in its folder. Outputs may differ from attn's by 1e-5, or by 1e-5 of
their largest number if that is above 1, as logits are.

With the command ATTN, small translators are trained and exported, and the Python code of docs/onnx.md must
give the same translations as `attn translate`. The tiny pipelines of sentence-transformers in models/testdata, and those
in the directories MODEL, are exported, and the code must give the same vectors as `attn embed`.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"  # ONNX Runtime 1.31 has the operators of opset 27, but not yet for everyone

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

TOLERANCE = 1e-5
ROOT = pathlib.Path(__file__).resolve().parent.parent
# The code of docs/onnx.md for translators and for encoders.
TRANSLATE, EMBED = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "onnx.md").read_text(), re.S)


def tensor(path):
    proto = onnx.TensorProto.FromString(path.read_bytes())
    return proto.name, numpy_helper.to_array(proto)


def tensors(folder, kind):
    return dict(tensor(path) for path in folder.glob(f"test_data_set_0/{kind}_*.pb"))


def session(path):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def check(folder):
    """Returns the largest difference of an output, and the operators of the model."""
    path = str(folder / "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    runtime = session(path)
    names = [o.name for o in runtime.get_outputs()]
    got = dict(zip(names, runtime.run(names, tensors(folder, "input"))))
    want = tensors(folder, "output")
    assert got.keys() == want.keys(), (got.keys(), want.keys())
    worst = 0.0
    for name, w in want.items():
        assert got[name].shape == w.shape, (name, got[name].shape, w.shape)
        if w.size:
            difference = np.abs(got[name] - w).max()
            assert difference <= TOLERANCE * max(1, np.abs(w).max()), f"{name} differs by {difference}"  # NaN is none
            worst = max(worst, float(difference))
    return worst, operators(model.graph)


def operators(graph):
    """Returns the names of the operators of a graph and of its branches."""
    found = set()
    for node in graph.node:
        found.add(f"{node.domain}.{node.op_type}".lstrip("."))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found |= operators(attribute.g)
    return found


def check_all(cases):
    worst, models, failed, uses = 0.0, 0, 0, collections.Counter()
    for path in sorted(cases.rglob("model.onnx")):
        models += 1
        try:
            difference, found = check(path.parent)
        except Exception as e:
            failed += 1
            print(f"{path.parent.relative_to(cases)}: {str(e)[:1000]}")
            continue
        worst = max(worst, difference)
        uses.update(found)
    print(f"onnx {onnx.__version__}, ONNX Runtime {ort.__version__}: {models} models, {uses['Attention']} with the operator Attention, "
          f"{uses['LinearAttention']} with LinearAttention, {uses['com.microsoft.LinearAttention']} with that of com.microsoft, "
          f"the largest difference is {worst:.2g}, failed: {failed}")
    if failed or not all(uses[op] for op in ("Attention", "LinearAttention", "com.microsoft.LinearAttention")):
        sys.exit("FAILED")


def check_translators(attn):
    texts = ["5 march 2019", "le 5 mars 2019", "tuesday, 17 october 1989", "dom., 10 de outubro de 2049", "what's this?"]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def run(*args):
            return subprocess.run([attn, *args], check=True, capture_output=True, text=True, cwd=folder).stdout

        for arch, units, more in [
            ("transformer", "char", ["--limit", "10000", "--epochs", "2"]),
            ("transformer", "bpe", ["--limit", "2000", "--epochs", "2", "--score", "additive"]),
            ("gru", "char", ["--limit", "4000", "--epochs", "2"]),
            ("gru", "word", ["--limit", "2000", "--epochs", "2", "--heads", "2"]),
        ]:
            name = f"{arch}-{units}"
            run("train", "--out", name, "--arch", arch, "--units", units, "--width", "64", *more)
            want = run("translate", "--model", name, *texts).split("\n")[:-1]
            for opset in ["17", "23"]:
                file = folder / f"{name}-{opset}.onnx"
                run("export", "--model", name, "--onnx", str(file), "--opset", opset)
                onnx.checker.check_model(str(file), full_check=True)
                scope = {}
                exec(TRANSLATE.replace("dates.onnx", str(file)), scope)
                got = [scope["translate"](text) for text in texts]
                if got != want:
                    sys.exit(f"FAILED: {name}, opset {opset}: {got}, want {want}")
                print(f"{name}, opset {opset}: {len(texts)} texts as attn translates them, such as {want[0]!r}")


def check_embedder(attn, model):
    """Compares the vectors of texts with those of attn embed."""
    texts = ["cat", "the cat sat on the mat", "who sleeps in the sun?", "", "a cat",
             "Attention compares each query with all keys. " * 20, "naïve café, 東京 — 42 €"]

    def run(*args):
        return subprocess.run([attn, *args], check=True, capture_output=True, text=True, input="\n".join(texts) + "\n").stdout

    want = np.array([json.loads(line) for line in run("embed", "--model", str(model)).splitlines()])
    settings, prompts = (
        json.loads((model / name).read_text()) for name in ("sentence_bert_config.json", "config_sentence_transformers.json")
    )
    prompt = prompts.get("prompts", {}).get(prompts.get("default_prompt_name"), "")
    with tempfile.TemporaryDirectory() as folder:
        for opset in ["17", "23"]:
            file, scope = str(pathlib.Path(folder) / "model.onnx"), {}
            run("export", "--model", str(model), "--onnx", file, "--opset", opset)
            onnx.checker.check_model(file, full_check=True)
            exec(EMBED.replace("MiniLM.onnx", file).replace("all-MiniLM-L6-v2", str(model)), scope)
            scope["tokenizer"].enable_truncation(settings.get("max_seq_length", 13))
            got = scope["embed"]([prompt + text for text in texts])
            difference = np.abs(got - want).max()
            if got.shape != want.shape or not difference <= TOLERANCE:
                sys.exit(f"FAILED: {model.name}, opset {opset}: vectors {got.shape}, want {want.shape}, differ by {difference}")
            print(f"{model.name}, opset {opset}: the vectors of {len(texts)} texts differ by {difference:.2g}")


if __name__ == "__main__":
    check_all(pathlib.Path(sys.argv[1]))
    if len(sys.argv) > 2:
        attn = str(pathlib.Path(sys.argv[2]).resolve())
        for model in [*sorted((ROOT / "models" / "testdata").glob("sentence_*")), *map(pathlib.Path, sys.argv[3:])]:
            check_embedder(attn, model.resolve())
        check_translators(attn)
