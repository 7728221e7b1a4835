"""OpenVINO on graphs that are made here from its operators, in the form that it converts models of transformers to."""

import contextlib
import functools
import sys

import nncf
import numpy as np
import openvino as ov
from openvino import opset13 as ops

import decoders
from peers import Unsupported

version = ov.__version__.split("-")[0]
nncf.set_log_level("ERROR")


def linear(x, weight, bias=None):
    y = ops.matmul(x, weight, False, True)
    return y if bias is None else ops.add(y, bias)


def split(x, heads):
    """[B, L, H·E] as [B, H, L, E]."""
    b, l, width = x.shape
    return ops.transpose(ops.reshape(x, [b, l, heads, width // heads], False), [0, 2, 1, 3])


def joined(x):
    """[B, H, L, E] as [B, L, H·E]."""
    b, h, l, e = x.shape
    return ops.reshape(ops.transpose(x, [0, 2, 1, 3]), [b, l, h * e], False)


def encoder(layers, heads, width, hidden, vocab, positions, tensor, b, l):
    """The hidden states of BERT."""
    ids = ops.parameter([b, l], np.int64)

    def mapped(x, name, n_in, n_out):
        return linear(x, tensor(name + ".weight", n_out, n_in), tensor(name + ".bias", n_out))

    def norm(x, name):
        y = ops.mvn(x, [-1], True, 1e-12, "inside_sqrt")
        return ops.add(ops.multiply(y, tensor(name + ".weight", width)), tensor(name + ".bias", width))

    place = tensor("embeddings.position_embeddings.weight", positions, width)[:l]
    place = place + tensor("embeddings.token_type_embeddings.weight", 2, width)[0]
    words = ops.gather(tensor("embeddings.word_embeddings.weight", vocab, width), ids, 0)
    x = norm(ops.add(words, place[None]), "embeddings.LayerNorm")
    for i in range(layers):
        at = f"encoder.layer.{i}."
        q, k, v = (split(mapped(x, f"{at}attention.self.{n}", width, width), heads) for n in ("query", "key", "value"))
        y = joined(ops.scaled_dot_product_attention(q, k, v))
        x = norm(ops.add(mapped(y, at + "attention.output.dense", width, width), x), at + "attention.output.LayerNorm")
        y = ops.gelu(mapped(x, at + "intermediate.dense", width, hidden), "erf")
        x = norm(ops.add(mapped(y, at + "output.dense", hidden, width), x), at + "output.LayerNorm")
    return ov.Model([x], [ids])


def decoder(d, l, last):
    """The logits of l tokens, or of the last of them, without a cache."""
    ids = ops.parameter([1, l], np.int64)
    table = ops.constant(d.embeddings())
    angle = np.arange(l)[:, None] * d.theta ** (-np.arange(0, d.e, 2) / d.e)
    cos, sin = (np.tile(f(angle), 2).astype(np.float32)[None, None] for f in (np.cos, np.sin))

    def norm(x, name):
        squares = ops.reduce_mean(ops.power(x, np.float32(2)), [-1], True)
        scale = ops.divide(np.float32(1), ops.sqrt(ops.add(squares, np.float32(d.eps))))
        return ops.multiply(d.gain(name), ops.multiply(x, scale))

    def turn(x):
        a, b = (ops.slice(x, [i], [j], [1], [3]) for i, j in ((0, d.e // 2), (d.e // 2, d.e)))
        turned = ops.concat([ops.multiply(b, np.float32(-1)), a], -1)
        return ops.add(ops.multiply(x, cos), ops.multiply(turned, sin))

    def shared(x):
        """Each head of keys or values as often as query heads share it."""
        n = d.heads // d.kv
        wide = ops.broadcast(ops.unsqueeze(x, [2]), [1, d.kv, n, l, d.e], broadcast_spec="BIDIRECTIONAL")
        return ops.reshape(wide, [1, d.heads, l, d.e], False)

    x = ops.gather(table, ids, 0)
    for i in range(d.layers):
        maps, at = d.maps(i), f"model.layers.{i}."
        y = norm(x, at + "input_layernorm")
        q, k, v = (split(linear(y, *maps[f"self_attn.{n}_proj"]), h) for n, h in (("q", d.heads), ("k", d.kv), ("v", d.kv)))
        y = ops.scaled_dot_product_attention(turn(q), shared(turn(k)), shared(v), causal=True)
        x = ops.add(x, linear(joined(y), *maps["self_attn.o_proj"]))
        y = norm(x, at + "post_attention_layernorm")
        gate, up = (linear(y, *maps[f"mlp.{n}_proj"]) for n in ("gate", "up"))
        x = ops.add(x, linear(ops.multiply(ops.swish(gate), up), *maps["mlp.down_proj"]))
    if last:
        x = ops.slice(x, [l - 1], [l], [1], [1])
    return ov.Model([linear(norm(x, "model.norm"), table)], [ids])


def compiled(model, threads, precision):
    """A request of the model on threads of which none is bound to a processor, as in other libraries."""
    core = ov.Core()
    if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        raise Unsupported("no bfloat16 on this processor")
    m = core.compile_model(
        model, "CPU",
        {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": precision,
        },
    )  # fmt: skip
    if m.get_property("INFERENCE_NUM_THREADS") != threads:
        raise Unsupported(f"{m.get_property('INFERENCE_NUM_THREADS')} threads, not {threads}")
    return m.create_infer_request()


def outputs(w):
    """The hidden states of an encoder or the logits of a decoder, of a text."""
    c, tensor = decoders.read(w.file)
    if c["model_type"] == "bert":
        model = encoder(
            c["num_hidden_layers"], c["num_attention_heads"], c["hidden_size"], c["intermediate_size"], c["vocab_size"],
            c["max_position_embeddings"], tensor, 1, len(w.ids),
        )  # fmt: skip
    else:
        model = decoder(decoders.of_directory(w.file), len(w.ids), False)
    request = compiled(model, w.threads, "f32")
    request.infer([np.array([w.ids])])
    return request.get_output_tensor().data


def forms(w, model):
    """Ways to run a model. In those of int8, inputs of products are 8-bit integers too: with scales that are found in
    advance from four texts, or while it runs, for each 32 numbers."""
    texts = np.random.default_rng(1).integers(w.vocab, size=(4, *model.input().shape))

    @functools.cache
    def quantized():
        data = nncf.Dataset(list(texts))
        with contextlib.redirect_stdout(sys.stderr):  # where nncf shows its progress
            return nncf.quantize(model, data, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(texts))

    def compressed():
        with contextlib.redirect_stdout(sys.stderr):
            return nncf.compress_weights(model.clone())

    def form(make, precision):
        @functools.cache  # when it is first called, so that a form that fails leaves the others
        def ready():
            request = compiled(make(), w.threads, precision)
            request.set_input_tensor(ov.Tensor(texts[0]))
            return request

        return lambda: ready().infer(share_outputs=True)

    hints = {"float32": "f32", "bfloat16": "bf16"}
    if w.storage in hints:
        return {w.storage: form(lambda: model, hints[w.storage])}
    return {
        "nncf.quantize, other operators in float32": form(quantized, "f32"),
        "nncf.quantize, other operators in bfloat16": form(quantized, "bf16"),
        "nncf.compress_weights, other operators in bfloat16": form(compressed, "bf16"),
    }


def encode(w):
    return forms(w, encoder(w.layers, w.h, w.width, w.hidden, w.vocab, w.lq, decoders.drawn(), w.b, w.lq))


def prompt(w):
    return forms(w, decoder(decoders.of_work(w), w.lk, True))


operations = {"encode": encode, "prompt": prompt}
