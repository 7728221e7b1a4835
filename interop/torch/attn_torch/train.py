"""Trains a run of attn on any number of processes, GPUs or machines:

    attn train --data pairs.tsv --prepare --out runs/big
    PYTHONPATH=interop/torch torchrun --nproc-per-node 8 -m attn_torch.train runs/big
    attn train --resume --out runs/big

The first command writes the untrained model and the pairs as numbers, the second trains, and the third measures the
model, or continues if the second was stopped. Batches, schedule and loss are the same as in attn; each process computes
its share of every batch. Only dropout differs: it drops other elements.

A step does not wait for the GPU. Losses are read every --read-every steps, at the end of an epoch, and before a save.
"""

import argparse
import contextlib
import itertools
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

from .batches import ahead, shares
from .files import Run, locked
from .recurrent import Recurrent

PAD, BOS = 0, 1


def share_loss(network, share, smoothing, device, lengths_on_cpu):
    """Returns a process's share of the mean cross entropy over the target tokens of all processes."""
    source, lengths, write = share.split(share.numbers.to(device, non_blocking=True))
    if lengths_on_cpu:
        _, lengths, _ = share.split(share.numbers)
    read = F.pad(write[:, :-1], (1, 0), value=BOS)
    logits = network(source, lengths, read)
    loss = F.cross_entropy(
        logits.flatten(0, 1).float(), write.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )
    return loss * share.weight


def rate(step, settings):
    """Returns the learning rate of a step: optim.WarmupInvSqrt times the largest rate."""
    warmup = max(settings["warmup"], 1)
    return settings["lr"] * min(step / warmup, math.sqrt(warmup / step))


def on_host(values):
    """Copies numbers from a device, for which it waits. Nothing else in a step waits."""
    return values.tolist()


def train(run, options, device, report):
    """Trains the remaining steps. Settings come from the run; options are those of the command line."""
    rank, world = dist.get_rank(), dist.get_world_size()
    settings, at = run.settings, dict(run.position)
    epochs = settings["epochs"] if options.epochs is None else options.epochs
    network = run.network.to(device)
    # A single kernel updates all parameters. On CPUs, the steps of AdamW have the order of attn's.
    fused = device.type == "cuda"
    optimizer = torch.optim.AdamW(network.parameters(), betas=(0.9, 0.98), eps=1e-8, weight_decay=0, fused=fused)
    run.load_optimizer(optimizer)
    parallel = network
    if world > 1:
        # A layer whose heads are all pruned uses only its output bias.
        headless = any(getattr(layer, "heads", None) == 0 for layer in network.modules())
        parallel = DistributedDataParallel(network, find_unused_parameters=headless)
    lines, unsaved, unread = [], 0, []
    since = time.perf_counter()

    def read():
        """Reads the losses and norms of the steps since the last call, and reports these steps."""
        nonlocal unread, since
        if not unread:
            return
        losses = torch.stack([loss for _, _, loss, _ in unread])
        dist.all_reduce(losses)
        values = on_host(torch.stack((losses, torch.stack([norm for *_, norm in unread])), 1))
        for (step, share, _, _), (loss, norm) in zip(unread, values):
            if not math.isfinite(loss) or not math.isfinite(norm):
                raise ValueError(f"epoch {at['epoch'] + 1}, step {step}: the loss has diverged")
            at["loss"], at["count"] = at["loss"] + loss * share.targets, at["count"] + share.targets
            at["tokens"] = at.get("tokens", 0) + share.tokens
            report({"kind": "update", "epoch": at["epoch"] + 1, "step": step, "loss": loss, "norm": norm})
        now = time.perf_counter()
        at["seconds"] = at.get("seconds", 0) + now - since
        unread, since = [], now

    def save():
        nonlocal lines, unsaved, since
        read()
        if rank == 0 and unsaved > 0:
            run.save(optimizer, at, lines)
        lines, unsaved, since = [], 0, time.perf_counter()

    lengths_on_cpu = isinstance(network, Recurrent)
    remaining = shares(run, epochs, rank, world, pinned=device.type == "cuda")
    for share in ahead(itertools.islice(remaining, options.steps), device):
        torch.manual_seed(settings["seed"] * 1_000_003 % 2**40 + at["total"] * world + rank)
        with torch.autocast(device.type, torch.bfloat16) if options.bfloat16 else contextlib.nullcontext():
            loss = share_loss(parallel, share, settings["smoothing"], device, lengths_on_cpu)
        optimizer.zero_grad()
        (loss * world).backward()  # the gradients of the processes are averaged
        norm = nn.utils.clip_grad_norm_(network.parameters(), settings["clip"] or math.inf)
        at["step"], at["total"], unsaved = at["step"] + 1, at["total"] + 1, unsaved + 1
        for group in optimizer.param_groups:
            group["lr"] = rate(at["total"], settings)
        optimizer.step()
        unread.append((at["step"], share, loss.detach(), norm))
        if share.last or len(unread) >= options.read_every:
            read()
        if share.last:
            line = {"kind": "epoch", "epoch": at["epoch"] + 1, "step": at["total"]}
            line |= {"train_loss": at["loss"] / at["count"], "valid_loss": None}
            lines.append(line | {"tokens": at["tokens"], "seconds": at["seconds"]})
            at = {"epoch": at["epoch"] + 1, "step": 0, "total": at["total"], "loss": 0, "count": 0}
        if share.last or unsaved >= options.save_every:
            save()
    save()


def at_least(least):
    """Returns a type of numbers for argparse."""

    def number(text):
        n = int(text)
        if n < least:
            raise argparse.ArgumentTypeError(f"{n}, want at least {least}")
        return n

    return number


def main():
    parser = argparse.ArgumentParser(prog="attn_torch.train", description=__doc__.splitlines()[0])
    parser.add_argument("run", help="directory written by attn train --prepare")
    parser.add_argument("--epochs", type=at_least(0), help="passes over the data, in total (default: as prepared)")
    parser.add_argument("--steps", type=at_least(0), help="stop after this number of steps")
    parser.add_argument(
        "--save-every", type=at_least(1), default=1000, help="steps between saves within an epoch (default 1000)"
    )
    parser.add_argument(
        "--read-every",
        type=at_least(1),
        default=32,
        help="steps between reads of losses from the device; the lines of these steps follow each read (default 32)",
    )
    parser.add_argument(
        "--bfloat16",
        action="store_true",
        help="compute products in bfloat16; weights, gradients and optimizer stay in float32 (default: all float32)",
    )
    options = parser.parse_args()

    # torchrun sets these; without it, this is the only process.
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}.items():
        os.environ.setdefault(name, value)
    torch.backends.cudnn.rnn.fp32_precision = "ieee"  # GRUs would use TF32, unlike other products
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
            train(run, options, device, report)
            dist.barrier()
    except OSError as e:
        sys.exit(f"attn_torch.train: {e.filename}: {e.strerror}" if e.filename else f"attn_torch.train: {e}")
    except (ValueError, KeyError) as e:
        sys.exit(f"attn_torch.train: {e}")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
