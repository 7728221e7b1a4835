"""CTranslate2: a step of a decoder, in the middle of a text that it generates."""

import tempfile
import time

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec

import decoders
from peers import FEWEST, Unsupported

STEPS = 16  # of a text, behind its first token
version = ctranslate2.__version__


def load(d, storage, threads):
    """The decoder with weights of a type, through a directory in CTranslate2's form."""
    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        d.layers, d.heads, activation=common_spec.Activation.SWISH, pre_norm=True, ffn_glu=True, rms_norm=True,
        rotary_dim=0, rotary_interleave=False, rotary_base=d.theta, num_heads_kv=d.kv,
    )  # fmt: skip

    def set_linear(to, weight, bias):
        to.weight = weight
        if bias is not None:
            to.bias = bias

    spec.decoder.scale_embeddings = False
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = d.embeddings()
    spec.decoder.layer_norm.gamma = d.gain("model.norm")
    for i, layer in enumerate(spec.decoder.layer):
        maps = d.maps(i)
        q, k, v = (maps[f"self_attn.{x}_proj"] for x in "qkv")
        set_linear(layer.self_attention.linear[0], *(None if q[j] is None else np.concatenate([q[j], k[j], v[j]]) for j in (0, 1)))
        set_linear(layer.self_attention.linear[1], *maps["self_attn.o_proj"])
        set_linear(layer.ffn.linear_0, *maps["mlp.gate_proj"])
        set_linear(layer.ffn.linear_0_noact, *maps["mlp.up_proj"])
        set_linear(layer.ffn.linear_1, *maps["mlp.down_proj"])
        layer.self_attention.layer_norm.gamma = d.gain(f"model.layers.{i}.input_layernorm")
        layer.ffn.layer_norm.gamma = d.gain(f"model.layers.{i}.post_attention_layernorm")
    spec.register_vocabulary([f"t{i}" for i in range(d.vocab)])
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "t0", "t1", "t2"
    spec.config.layer_norm_epsilon = d.eps
    spec.validate()
    spec.optimize(quantization=None if storage == "float32" else storage)
    with tempfile.TemporaryDirectory() as path:
        spec.save(path)
        return ctranslate2.Generator(path, device="cpu", compute_type=storage, intra_threads=threads)


def outputs(w):
    """The logits of what follows each of a text's tokens."""
    return np.array(load(decoders.of_directory(w.file), "float32", w.threads).forward_batch([w.ids]))[0]


class Steps:
    """The time from token to token, of texts that are generated one after the other."""

    def __init__(self, generator, read):
        self.generator, self.prompt = generator, ["t5"] * read

    def times(self, seconds):
        """The milliseconds of each step."""
        found, start = [], time.perf_counter()
        while len(found) < FEWEST or time.perf_counter() - start < seconds:
            at = []
            self.generator.generate_batch(
                [self.prompt], min_length=STEPS, max_length=STEPS, sampling_topk=1, include_prompt_in_result=False,
                callback=lambda step: at.append(time.perf_counter()),
            )  # fmt: skip
            found += [(b - a) * 1e3 for a, b in zip(at, at[1:])]
        return found


def generate(w):
    supported = ctranslate2.get_supported_compute_types("cpu")
    if w.storage not in supported:
        raise Unsupported(f"no {w.storage} on this processor, but {', '.join(sorted(supported))}")
    return {f"{w.storage}, a step of generate_batch": Steps(load(decoders.of_work(w), w.storage, w.threads), w.lk)}


operations = {"generate": generate}
