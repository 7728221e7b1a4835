"""Trains a run of attn on any number of processes, GPUs or machines:

    attn train --data pairs.tsv --prepare --out runs/big
    PYTHONPATH=interop/torch torchrun --nproc-per-node 8 -m attn_torch.train runs/big
    attn train --resume --out runs/big

The first command writes the untrained model and the pairs as numbers, the second trains, and the third measures the
model, or continues if the second was stopped. Batches, schedule and loss are the same as in attn; each process computes
its share of every batch. Only dropout differs: it drops other elements.
"""

import argparse
import contextlib
import json
import math
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from .batches import batches
from .files import Run, locked

PAD, BOS = 0, 1


def rectangle(rows):
    return nn.utils.rnn.pad_sequence([row.long() for row in rows], batch_first=True, padding_value=PAD)


def share_loss(network, examples, smoothing, device):
    """Returns the sum of the cross entropy over all target tokens of the examples."""
    sources, targets = zip(*examples)
    lengths = torch.tensor([len(s) for s in sources], device=device)
    write = rectangle(targets).to(device)
    read = F.pad(write[:, :-1], (1, 0), value=BOS)
    logits = network(rectangle(sources).to(device), lengths, read)
    return F.cross_entropy(
        logits.flatten(0, 1), write.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )


def rate(step, settings):
    """Returns the learning rate of a step: nn.WarmupInvSqrt times the largest rate."""
    warmup = max(settings["warmup"], 1)
    return settings["lr"] * min(step / warmup, math.sqrt(warmup / step))


def train(run, epochs, most, save_every, device, report):
    rank, world = dist.get_rank(), dist.get_world_size()
    settings, at = run.settings, dict(run.position)
    network = run.network.to(device)
    optimizer = torch.optim.AdamW(network.parameters(), betas=(0.9, 0.98), eps=1e-8, weight_decay=0)
    run.load_optimizer(optimizer)
    # A layer whose heads are all pruned uses only its output bias.
    headless = any(getattr(layer, "heads", None) == 0 for layer in network.modules())
    parallel = DistributedDataParallel(network, find_unused_parameters=headless)
    lines, unsaved = [], 0

    def save():
        nonlocal lines, unsaved
        if rank == 0 and unsaved > 0:
            run.save(optimizer, at, lines)
        lines, unsaved = [], 0

    while at["epoch"] < epochs:
        steps = batches(run.lengths, settings["batch"], settings["seed"], at["epoch"])
        while at["step"] < len(steps):
            if most is not None and most <= 0:
                save()
                return
            start = time.perf_counter()
            torch.manual_seed(settings["seed"] * 1_000_003 % 2**40 + at["total"] * world + rank)
            batch = steps[at["step"]]
            targets = sum(run.lengths[i][1] for i in batch)
            # A process without a pair computes one with weight 0: every process must take part in the reduction.
            share, weight = batch[rank::world], 1.0
            if not share:
                share, weight = batch[:1], 0.0
            loss = share_loss(parallel, [run.example(i) for i in share], settings["smoothing"], device) * (weight / targets)
            optimizer.zero_grad()
            (loss * world).backward()  # the gradients of the processes are averaged
            norm = nn.utils.clip_grad_norm_(network.parameters(), settings["clip"] or math.inf).item()
            loss = loss.detach()
            dist.all_reduce(loss)
            loss = loss.item()
            if not math.isfinite(loss) or not math.isfinite(norm):
                raise ValueError(f"epoch {at['epoch'] + 1}, step {at['step'] + 1}: the loss has diverged")
            at["step"], at["total"], unsaved = at["step"] + 1, at["total"] + 1, unsaved + 1
            for group in optimizer.param_groups:
                group["lr"] = rate(at["total"], settings)
            optimizer.step()
            at["loss"], at["count"] = at["loss"] + loss * targets, at["count"] + targets
            at["tokens"] = at.get("tokens", 0) + sum(sum(run.lengths[i]) for i in batch)
            at["seconds"] = at.get("seconds", 0) + time.perf_counter() - start
            report({"kind": "update", "epoch": at["epoch"] + 1, "step": at["step"], "loss": loss, "norm": norm})
            most = None if most is None else most - 1
            if at["step"] < len(steps) and unsaved >= save_every:
                save()
        line = {"kind": "epoch", "epoch": at["epoch"] + 1, "step": at["total"]}
        line |= {"train_loss": at["loss"] / at["count"], "valid_loss": None}
        lines.append(line | {"tokens": at["tokens"], "seconds": at["seconds"]})
        at = {"epoch": at["epoch"] + 1, "step": 0, "total": at["total"], "loss": 0, "count": 0}
        save()


def main():
    parser = argparse.ArgumentParser(prog="attn_torch.train", description=__doc__.splitlines()[0])
    parser.add_argument("run", help="directory written by attn train --prepare")
    parser.add_argument("--epochs", type=int, help="passes over the data, in total (default: as prepared)")
    parser.add_argument("--steps", type=int, help="stop after this number of steps")
    parser.add_argument("--save-every", type=int, default=1000, help="steps between saves within an epoch (1000)")
    options = parser.parse_args()

    # torchrun sets these; without it, this is the only process.
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        os.environ.setdefault(name, value)
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    else:
        device = torch.device("cpu")
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    first = dist.get_rank() == 0

    def report(line):
        if first:
            print(json.dumps(line), flush=True)

    try:
        with locked(options.run) if first else contextlib.nullcontext():
            dist.barrier()
            run = Run(options.run)
            epochs = run.settings["epochs"] if options.epochs is None else options.epochs
            train(run, epochs, options.steps, options.save_every, device, report)
            dist.barrier()
    except OSError as e:
        sys.exit(f"attn_torch.train: {e.filename}: {e.strerror}" if e.filename else f"attn_torch.train: {e}")
    except (ValueError, KeyError) as e:
        sys.exit(f"attn_torch.train: {e}")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
