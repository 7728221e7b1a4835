"""Counts what a step of training waits for. A program that waits for a GPU leaves it idle while it launches kernels.

    attn train --data pairs.tsv --prepare --out runs/big
    python interop/torch/waits.py runs/big

The steps run on a GPU, on which PyTorch raises an error if something waits. Without a GPU they run on the device meta,
whose tensors have no numbers: nothing can read one. The directory does not change.
"""

import argparse
import sys
from pathlib import Path
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).resolve().parent))

from attn_torch import Run, train  # noqa: E402


class Copies(TorchDispatchMode):
    """Counts the copies between devices that enter the dispatcher."""

    def __init__(self):
        super().__init__()
        self.to_device = 0

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        out = op(*args, **(kwargs or {}))
        if op is torch.ops.aten._to_copy.default and args[0].device.type == "cpu" != out.device.type:
            self.to_device += 1
        return out


def count(directory, steps, read_every, device):
    """Returns the number of steps, of reads of losses, and of copies to the device in these steps."""
    run, lines, reads = Run(directory), [], []

    def on_host(values):
        reads.append(len(values))
        if device.type == "meta":
            return [[1.0, 1.0]] * len(values)
        torch.cuda.set_sync_debug_mode("default")
        values = values.tolist()
        torch.cuda.set_sync_debug_mode("error")
        return values

    options = argparse.Namespace(epochs=1000, steps=steps, save_every=steps + 1, read_every=read_every, bfloat16=False)
    one = mock.Mock(**{"get_rank.return_value": 0, "get_world_size.return_value": 1})
    with mock.patch.multiple(train, dist=one, on_host=on_host), mock.patch.object(run, "save"), Copies() as copies:
        before = [copies.to_device]
        load = run.load_optimizer

        def loaded(optimizer):
            load(optimizer)
            before[0] = copies.to_device
            if device.type == "cuda":
                torch.cuda.set_sync_debug_mode("error")

        with mock.patch.object(run, "load_optimizer", loaded):
            try:
                train.train(run, options, device, lines.append)
            finally:
                if device.type == "cuda":
                    torch.cuda.set_sync_debug_mode("default")
    return len(lines), len(reads), copies.to_device - before[0]


if __name__ == "__main__":
    where = torch.device("cuda" if torch.cuda.is_available() else "meta")
    print("%d steps, %d reads, %d copies to the device" % count(sys.argv[1], 100, 32, where))
