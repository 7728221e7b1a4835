"""A Llama or a Qwen2 of any size: its shape, and its tensors by the names that a model.safetensors has."""

import itertools
import json
import math
import pathlib

import numpy as np


class Decoder:
    """Weights are float32 [out, in]. The embeddings make the logits, too."""

    def __init__(self, layers, heads, kv, width, hidden, vocab, theta, eps, bias, tensor):
        self.layers, self.heads, self.kv, self.e = layers, heads, kv, width // heads
        self.width, self.hidden, self.vocab, self.theta, self.eps, self.bias = width, hidden, vocab, theta, eps, bias
        self.tensor = tensor  # of a name and sizes

    def linear(self, layer, name, n_in, n_out, bias=False):
        """The weight of a map of a layer, and its bias or None."""
        name = f"model.layers.{layer}.{name}."
        return self.tensor(name + "weight", n_out, n_in), self.tensor(name + "bias", n_out) if bias else None

    def maps(self, layer):
        """The maps of a layer by their names in a model.safetensors."""
        w, kv = self.width, self.kv * self.e
        return {
            "self_attn.q_proj": self.linear(layer, "self_attn.q_proj", w, w, self.bias),
            "self_attn.k_proj": self.linear(layer, "self_attn.k_proj", w, kv, self.bias),
            "self_attn.v_proj": self.linear(layer, "self_attn.v_proj", w, kv, self.bias),
            "self_attn.o_proj": self.linear(layer, "self_attn.o_proj", w, w),
            "mlp.gate_proj": self.linear(layer, "mlp.gate_proj", w, self.hidden),
            "mlp.up_proj": self.linear(layer, "mlp.up_proj", w, self.hidden),
            "mlp.down_proj": self.linear(layer, "mlp.down_proj", self.hidden, w),
        }

    def gain(self, name):
        return self.tensor(name + ".weight", self.width)

    def embeddings(self):
        return self.tensor("model.embed_tokens.weight", self.vocab, self.width)


def drawn():
    """Random numbers of about 0.03, and 1 for the gains of norms; the same few again and again, which is faster. Each
    tensor begins elsewhere among them: a library would compute products with equal weights only once."""
    some = (np.random.default_rng(1).standard_normal(1 << 20) / 30).astype(np.float32)
    begin = itertools.count(step=99_991)  # a prime number, so that the beginnings differ

    def tensor(name, *shape):
        if "norm" in name.lower() and name.endswith("weight"):
            return np.ones(shape, np.float32)
        return np.resize(np.roll(some, next(begin)), math.prod(shape)).reshape(shape)

    return tensor


def of_work(w):
    return Decoder(w.layers, w.h, w.g, w.width, w.hidden, w.vocab, 1e5, 1e-5, w.bias, drawn())


def read(path):
    """What config.json says in a directory in the form of Hugging Face, and its tensors, which are float32."""
    path = pathlib.Path(path)
    data = (path / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])

    def tensor(name, *shape):
        info = header[name]
        if info["dtype"] != "F32" or tuple(info["shape"]) != shape:
            raise ValueError(f"{name} is {info['dtype']} {info['shape']}, want F32 {list(shape)}")
        begin, stop = info["data_offsets"]
        return np.frombuffer(data[end + begin : end + stop], np.float32).reshape(shape)

    return json.loads((path / "config.json").read_text()), tensor


def of_directory(path):
    """The decoder in a directory."""
    c, tensor = read(path)
    return Decoder(
        c["num_hidden_layers"], c["num_attention_heads"], c["num_key_value_heads"], c["hidden_size"],
        c["intermediate_size"], c["vocab_size"], c["rope_theta"], c["rms_norm_eps"], c["model_type"] == "qwen2", tensor,
    )  # fmt: skip
