"""Writes testdata/translators: translators of attn, and PyTorch's results for them in float64.

    ATTN_TORCH_CASES=/tmp/cases go test -count=1 -run TestTorchCases ./models
    python interop/torch/golden.py /tmp/cases            write the files
    python interop/torch/golden.py /tmp/cases --check    compare only; exit 1 on a difference

The directories are written by attn and the numbers by PyTorch; a Go test compares attn's numbers with them.
"""

import os
import shutil
import sys
from pathlib import Path

# Gives the same bits with every vector unit. Both variables must be set before torch is loaded.
os.environ["MKL_CBWR"] = "COMPATIBLE"
os.environ["ATEN_CPU_CAPABILITY"] = "default"

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from cases import read, run  # noqa: E402

HERE = Path(__file__).resolve().parent
TO = HERE.parent.parent / "testdata" / "translators"
FILES = "config.json", "tokenizer.json", "target.json", "model.safetensors"
NAMES = "pruned", "transformer-scaled-3", "transformer-additive-3", "gru-additive-0", "gru-gaussian-3"


def content(path):
    return path.read_bytes() if path.exists() else None


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def main(cases, check=False):
    torch.set_num_threads(1)
    different = 0
    for name in NAMES:
        given, metadata = read(cases / name / "golden.safetensors")
        smoothing = float(metadata["smoothing"])
        exact = run(cases / name, given, smoothing, torch.float64)
        plain = run(cases / name, given, smoothing, torch.float32)
        golden = {n: x for n, x in given.items() if n.startswith("in.")}
        about = {"case": name, "smoothing": metadata["smoothing"]}
        for n, x in exact.items():
            golden[n] = x.contiguous()
            off = (plain[n].double() - x).abs()
            about["budget." + n] = repr(float(off.max()) if off.numel() else 0.0)
        if not check:
            shutil.rmtree(TO / name, ignore_errors=True)
            shutil.copytree(cases / name, TO / name)
            save_file(golden, TO / name / "golden.safetensors", about)
            continue
        names = [file for file in FILES if content(TO / name / file) != content(cases / name / file)]
        there, metadata = read(TO / name / "golden.safetensors")
        if metadata != about or not same(there, golden):
            names.append("golden.safetensors")
        for file in names:
            print(f"{TO / name / file}: differs from what this script writes")
        different += len(names)
    if not check:
        for path in TO.iterdir():
            if path.name not in NAMES:
                shutil.rmtree(path)
    sys.exit(different > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] == ["--check"])
