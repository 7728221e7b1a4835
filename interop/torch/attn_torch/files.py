"""Reads and writes directories of attn: a model, or a run created by `attn train --prepare`.

A save replaces all its files or none, even if the process is killed, with the same protocol as attn. Files are written
into a folder, the folder is renamed to .attn-save, which is the atomic step, and then they are moved to their places.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from .recurrent import Recurrent, attn_name, torch_name
from .transformer import Transformer

try:
    import fcntl
except ImportError:  # no locks on Windows
    fcntl = None

WEIGHTS, TRAINING, EXAMPLES = "model.safetensors", "training.safetensors", "examples.safetensors"
SAVED = ".attn-save"
NETWORKS = {"attn-transformer": Transformer, "attn-gru": Recurrent}  # by model_type in config.json


@dataclasses.dataclass
class Config:
    """config.json: see models.TranslatorConfig."""

    model_type: str
    score: str
    width: int
    heads: int
    layers: int
    dropout: float
    source_vocab: int
    target_vocab: int
    hidden: int = 0
    pruned_heads: dict = dataclasses.field(default_factory=dict)


def load(directory):
    """Loads the network of a directory of attn, as a torch.nn.Module in training mode."""
    directory = Path(directory)
    fields = json.loads(place(directory, "config.json").read_text())
    weights = place(directory, WEIGHTS)
    saved = metadata(weights).get("config")
    if saved is not None and json.loads(saved) != fields:
        raise ValueError(f"{directory}: config.json differs from the configuration with which {WEIGHTS} was saved")
    kind = fields.get("model_type")
    if kind not in NETWORKS:
        raise ValueError(f"{directory}: model_type {kind!r}, want {' or '.join(NETWORKS)}")
    network = NETWORKS[kind](Config(**fields))
    network.load_state_dict({torch_name(name): x for name, x in load_file(weights).items()})
    return network


def save(network, directory):
    """Writes the weights of a network to the directory that it was loaded from, or to a copy of that directory."""
    directory = Path(directory)
    with locked(directory):
        about = metadata(place(directory, WEIGHTS))
        replace(directory, {WEIGHTS: lambda path: save_file(parameters(network), path, about)})


def parameters(network):
    """Returns the parameters by attn's names."""
    return {attn_name(name): x.detach().cpu().contiguous() for name, x in network.named_parameters()}


class Run:
    """A run in a directory: its network, the state of its training, and its pairs as numbers."""

    def __init__(self, directory):
        self.directory = Path(directory)
        self.network = load(directory)
        self.about = json.loads(metadata(self.place(TRAINING))["checkpoint"])
        self.settings, self.position = self.about["settings"], self.about["position"]
        if not self.place(EXAMPLES).exists() or metadata(self.place(EXAMPLES)).get("data") != self.about["data"]:
            raise ValueError(f"{directory}: {EXAMPLES} is from another run; run attn train --prepare again")
        examples = load_file(self.place(EXAMPLES))
        # Source and target of each pair, concatenated, each including its end mark; and their lengths [n 2].
        self.ids, self.sizes = examples["ids"], examples["lengths"].long()

    def place(self, name):
        return place(self.directory, name)

    def load_optimizer(self, optimizer):
        """Restores the saved state of AdamW."""
        saved = load_file(self.place(TRAINING))
        for name, p in self.network.named_parameters():
            m, v = (saved[f"adamw.{attn_name(name)}.{moment}"].to(p.device) for moment in "mv")
            at = p.device if optimizer.defaults["fused"] else "cpu"
            steps = torch.tensor(float(self.position["total"]), device=at)
            optimizer.state[p] = {"step": steps, "exp_avg": m, "exp_avg_sq": v}

    def save(self, optimizer, position, lines):
        """Saves weights and training, and appends lines to the metrics."""
        tensors = {}
        weights = parameters(self.network)
        for name, p in self.network.named_parameters():
            name, state = attn_name(name), optimizer.state[p]
            tensors["param." + name] = weights[name]
            tensors[f"adamw.{name}.m"] = state["exp_avg"].cpu().contiguous()
            tensors[f"adamw.{name}.v"] = state["exp_avg_sq"].cpu().contiguous()
        about = {"checkpoint": json.dumps(self.about | {"position": position})}
        metrics = self.place("metrics.jsonl").read_text() + "".join(json.dumps(line) + "\n" for line in lines)
        replace(
            self.directory,
            {
                WEIGHTS: lambda path, about=metadata(self.place(WEIGHTS)): save_file(weights, path, about),
                TRAINING: lambda path: save_file(tensors, path, about),
                "metrics.jsonl": lambda path: path.write_text(metrics),
            },
        )


def metadata(path):
    with safe_open(path, "pt") as file:
        return file.metadata() or {}


def place(directory, name):
    """Returns the current path of a file of the directory."""
    saved = directory / SAVED / name
    return saved if saved.exists() else directory / name


@contextlib.contextmanager
def locked(directory):
    """Locks a directory against writes by other processes, including attn."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"{directory}: another process is writing there") from None
    else:
        yield
    finally:
        os.close(descriptor)


def replace(directory, files):
    """Replaces files, each by a function that writes it to a path. The directory must be locked."""
    publish(directory)
    temp = Path(tempfile.mkdtemp(dir=directory, prefix=".attn-", suffix=".tmp"))
    try:
        for name, write in files.items():
            write(temp / name)
            sync(temp / name)
        sync(temp)
        os.rename(temp, directory / SAVED)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise
    sync(directory)
    publish(directory)


def publish(directory):
    """Moves saved files to their places."""
    saved = directory / SAVED
    if not saved.exists():
        return
    if any(file.is_dir() or file.suffix == ".gone" for file in saved.iterdir()):
        raise ValueError(f"{directory}: attn was interrupted while saving; run an attn command on it first")
    for file in saved.iterdir():
        os.replace(file, directory / file.name)
    sync(directory)
    saved.rmdir()


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
