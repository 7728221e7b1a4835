"""llama.cpp, by the package llama-cpp-python: a step of a decoder, behind tokens in its cache.

A decoder in a directory is read from float32.gguf or bfloat16.gguf beside its weights, which gguf_decoder.py writes.
"""

import os
import pathlib
import tempfile

import gguf
import llama_cpp
import numpy as np
from gguf import GGMLQuantizationType as Type

import decoders
from peers import Unsupported

version = llama_cpp.__version__
types = {"float32": Type.F32, "bfloat16": Type.BF16, "int8": Type.Q8_0}
names = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def has_tiles():
    """Whether the processor has tile units for integers, as far as the system says so."""
    info = pathlib.Path("/proc/cpuinfo")
    return info.exists() and "amx_int8" in info.read_text()


defaults = llama_cpp.llama_cpp.llama_model_default_params


def params():
    """llama.cpp lays weights out for the processor unless that has tile units, whose code in 0.3.36 ends the process."""
    p = defaults()
    p.use_extra_bufts = not has_tiles()
    return p


llama_cpp.llama_cpp.llama_model_default_params = params  # which class Llama has no option for


def interleaved(x, heads):
    """Rows of q or k for rotary positions that turn neighbours, where x is for those that turn halves."""
    return x.reshape(heads, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def write(d, path, kind):
    """A GGUF file without a vocabulary, whose matrices have a type; what follows are vectors, in float32."""
    f = gguf.GGUFWriter(path, "qwen2" if d.bias else "llama")
    f.add_context_length(8192)
    f.add_embedding_length(d.width)
    f.add_block_count(d.layers)
    f.add_feed_forward_length(d.hidden)
    f.add_head_count(d.heads)
    f.add_head_count_kv(d.kv)
    f.add_rope_freq_base(d.theta)
    f.add_rope_dimension_count(d.e)
    f.add_layer_norm_rms_eps(d.eps)
    f.add_vocab_size(d.vocab)
    f.add_tokenizer_model("no_vocab")

    def matrix(name, x):
        data = gguf.quants.quantize(np.ascontiguousarray(x), kind)
        f.add_tensor(name, data, raw_dtype=kind)

    matrix("token_embd.weight", d.embeddings())
    f.add_tensor("output_norm.weight", d.gain("model.norm"))
    for i in range(d.layers):
        at = f"blk.{i}."
        f.add_tensor(at + "attn_norm.weight", d.gain(f"model.layers.{i}.input_layernorm"))
        f.add_tensor(at + "ffn_norm.weight", d.gain(f"model.layers.{i}.post_attention_layernorm"))
        for name, (weight, bias) in d.maps(i).items():
            if not d.bias and name in ("self_attn.q_proj", "self_attn.k_proj"):
                weight = interleaved(weight, d.heads if name == "self_attn.q_proj" else d.kv)
            matrix(at + names[name] + ".weight", weight)
            if bias is not None:
                f.add_tensor(at + names[name] + ".bias", bias)
    f.write_header_to_file()
    f.write_kv_data_to_file()
    f.write_tensors_to_file()
    f.close()


def load(d, kind, tokens, threads, **options):
    with tempfile.TemporaryDirectory() as path:
        path = os.path.join(path, "model.gguf")
        write(d, path, kind)
        return opened(path, tokens, threads, **options)


def opened(path, tokens, threads, **options):
    return llama_cpp.Llama(path, n_ctx=tokens, n_threads=threads, n_threads_batch=threads, verbose=False, **options)


def model(w, more, **options):
    """The decoder of a Work, with a context for some more tokens than it begins with."""
    cache = Type.F32 if w.storage == "float32" else Type.F16
    options |= {"type_k": cache, "type_v": cache}
    if not w.file:
        return load(decoders.of_work(w), types[w.storage], w.lk + more, w.threads, **options)
    path = os.path.join(w.file, w.storage + ".gguf")
    if not os.path.exists(path):
        raise Unsupported(f"no {path}")
    return opened(path, w.lk + more, w.threads, **options)


def outputs(w):
    """The logits of what follows each of a text's tokens."""
    m = load(decoders.of_directory(w.file), Type.F32, 64, w.threads, logits_all=True, type_k=Type.F32, type_v=Type.F32)
    m.eval(w.ids)
    return m.scores[: len(w.ids)]


def generate(w):
    m = model(w, 4096 if w.file else 64)
    m.eval([5] * w.lk)

    def step():
        if not w.file:  # a state cannot take tokens back, so the text of a directory's decoder grows
            m.n_tokens = w.lk  # what is behind them goes
        m.eval([5])
        m._ctx.get_logits()  # which waits for them

    return {types[w.storage].name: step}


def prompt(w):
    m = model(w, 64, n_batch=w.lk, n_ubatch=min(w.lk, 512))

    def read():
        m.n_tokens = 0
        m.eval([5] * w.lk)
        m._ctx.get_logits()

    return {types[w.storage].name: read}


operations = {"generate": generate, "prompt": prompt}
