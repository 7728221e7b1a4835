"""Compares attn's translators with their counterparts in attn_torch, in both directions.

    go build -o /tmp/attn ./cmd/attn
    ATTN_TORCH_CASES=/tmp/cases go test -count=1 -run TestTorchCases ./models
    python interop/torch/check.py /tmp/cases /tmp/attn

1. Logits, loss and gradients of every score, compared with attn's.
2. Ten steps by torchrun on two processes, compared with the same ten steps by attn: losses within 1e-4. Steps in
   bfloat16 are near them. A step waits for its device only where losses are read, see waits.py.
3. A model trained and saved by PyTorch, in every command of attn; a run that switches between the two programs twice.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from cases import attn_torch, read, run
from waits import count

HERE = Path(__file__).resolve().parent
ENOUGH = 1e-4  # tolerance for the losses of ten steps
NETWORKS = {
    "transformer": ["--width", "32", "--heads", "4", "--layers", "2"],
    "transformer, additive": ["--width", "32", "--heads", "4", "--layers", "1", "--score", "additive"],
    "gru": ["--arch", "gru", "--score", "additive", "--width", "32"],
    "gru with heads": ["--arch", "gru", "--score", "scaled", "--heads", "4", "--width", "32", "--layers", "2"],
}


def check(ok, what):
    if not ok:
        sys.exit(f"check: {what}")


def compare_cases(folder):
    cases = sorted(folder.iterdir())
    check(len(cases) > 20, f"{len(cases)} cases in {folder}, want more than 20")
    worst = 0.0
    for case in cases:
        want, metadata = read(case / "golden.safetensors")
        for name, got in run(case, want, float(metadata["smoothing"]), torch.float32).items():
            if got.numel() == 0:
                continue
            off = float((got - want[name].view_as(got)).abs().max() / max(1.0, float(want[name].abs().max())))
            check(off < 2e-5, f"{case.name}: {name} is off by {off:.1e}")
            worst = max(worst, off)
    print(f"{len(cases)} translators: logits, losses and gradients are within {worst:.1e}")


class Workshop:
    """A folder with pairs in which both programs train."""

    def __init__(self, folder, attn):
        self.folder, self.binary = Path(folder), attn
        self.pairs = self.folder / "pairs.tsv"
        numbers = [n * 7919 % 100_000 for n in range(1, 90)]
        self.pairs.write_text("".join(f"{n}\t{str(n)[::-1]} {n % 7}\n" for n in numbers))

    def attn(self, *args):
        done = subprocess.run([self.binary, *map(str, args)], capture_output=True, text=True)
        check(done.returncode == 0, f"attn {' '.join(map(str, args))}: {done.stderr}")
        return done.stdout

    def prepare(self, name, network):
        """Prepares a run of 2 epochs of 5 steps, without dropout, which differs between the programs."""
        out = self.folder / name
        self.attn("train", "--data", self.pairs, "--limit", 80, "--valid", self.pairs, "--units", "char", "--batch", 16,
                  "--epochs", 2, "--dropout", 0, "--warmup", 4, "--prepare", "--out", out, *network)
        return out

    def torch(self, out, *args, processes=2):
        """Returns the steps of a run by torchrun."""
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes), "--standalone"]
        environment = os.environ | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        done = subprocess.run(
            [*command, "-m", "attn_torch.train", str(out), *map(str, args)],
            capture_output=True, text=True, env=environment,
        )
        check(done.returncode == 0, f"torchrun: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def steps(self, out, *args):
        """Returns the steps of attn, which continues the run."""
        lines = map(json.loads, self.attn("train", "--resume", "--json", "--steps", "--out", out, *args).splitlines())
        return [line for line in lines if line["kind"] == "update"]


def compare_steps(name, ours, theirs):
    check(len(ours) == len(theirs), f"{name}: {len(theirs)} steps by torchrun, {len(ours)} by attn")
    worst = 0.0
    for a, b in zip(ours, theirs):
        check((a["epoch"], a["step"]) == (b["epoch"], b["step"]), f"{name}: step {b} of torchrun is {a} of attn")
        worst = max(worst, abs(a["loss"] - b["loss"]))
    check(worst < ENOUGH, f"{name}: losses differ by {worst:.1e}: attn {ours}, torchrun {theirs}")
    print(f"{name}: {len(ours)} steps on two processes, losses {ours[0]['loss']:.4f} to {ours[-1]['loss']:.4f}, "
          f"within {worst:.1e} of attn's")


def compare_bfloat16(shop):
    out = shop.prepare("bfloat16", NETWORKS["transformer"])
    copy = shutil.copytree(out, f"{out}.float32")
    ours, theirs = shop.torch(copy, processes=1), shop.torch(out, "--bfloat16", "--read-every", 3, processes=1)
    check([line["step"] for line in ours] == [line["step"] for line in theirs], f"steps of bfloat16: {theirs}")
    worst = max(abs(a["loss"] - b["loss"]) for a, b in zip(ours, theirs))
    check(0 < worst < 0.02, f"losses in bfloat16 differ by {worst:.1e}")
    weights = read(out / "model.safetensors")[0]
    check({x.dtype for x in weights.values()} == {torch.float32}, "weights are not saved in float32")
    print(f"losses in bfloat16 are within {worst:.1e}")


def check_waits(shop):
    """Steps of two epochs of 5, with reads after 4 steps and at the end of an epoch."""
    for name, steps, copies in ("transformer", 10, 1), ("gru with heads", 5, 4):
        out = shop.prepare("waits-" + name.replace(" ", "-"), NETWORKS[name])
        got = count(out, steps, 4, torch.device("meta"))
        longer = got[2] - copies * steps  # the tables of sinusoids that are computed again
        ok = got[:2] == (steps, 2 * steps // 5) and 0 <= longer <= 2
        check(ok, f"{name}: {got} steps, reads and copies, want {steps} steps")
    print("a step waits for its device only where losses are read")


def main(cases, attn):
    compare_cases(cases)
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(folder, attn)
        check_waits(shop)
        compare_bfloat16(shop)
        for name, network in NETWORKS.items():
            out = shop.prepare(name.replace(" ", "-"), network)
            copy = shutil.copytree(out, f"{out}.attn")
            compare_steps(name, shop.steps(copy), shop.torch(out))
            # The directory works like any other model directory of attn.
            text = shop.pairs.read_text().split("\t")[0]
            shop.attn("eval", "--model", out, "--data", shop.pairs, "--json")
            shop.attn("translate", "--model", out, "--map", text)
            shop.attn("export", "--model", out, "--onnx", f"{out}.onnx")
            if "heads" in name or "transformer" in name:
                shop.attn("heads", "--model", out, "--data", shop.pairs)
                shop.attn("map", "--model", out, "--all", text)
                small = f"{out}.small"
                shop.attn("prune", "--model", out, "--data", shop.pairs, "--out", small, "--share", 0.25, "--method", "weight-norm",
                          "--resamples", 100, "--speed-time", "0s")
                attn_torch.load(small)

        # Three steps by one process, two by attn to the end of the epoch, five by three processes.
        name, network = "a run that switches programs", NETWORKS["transformer"]
        out = shop.prepare("hands", network)
        copy = shutil.copytree(out, f"{out}.attn")
        steps = shop.torch(out, "--steps", "3", processes=1) + shop.steps(out, "--epochs", 1)
        steps += shop.torch(out, "--epochs", "2", processes=3)
        compare_steps(name, shop.steps(copy), steps)
        # Both programs complete an interrupted save.
        saved = out / ".attn-save"
        saved.mkdir()
        os.rename(out / "model.safetensors", saved / "model.safetensors")
        attn_torch.save(attn_torch.load(out), out)
        check(not saved.exists(), "an interrupted save has not been completed")
        shop.attn("train", "--resume", "--epochs", 2, "--out", out)
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        kinds = [(line["kind"], line.get("epoch")) for line in lines if line["kind"] != "step"]
        check(kinds == [("epoch", 1), ("final", None), ("epoch", 2), ("final", None)], f"metrics: {lines}")
    print("all checks passed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
