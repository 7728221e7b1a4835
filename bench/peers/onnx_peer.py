"""ONNX Runtime on models that are made here, one for each kernel that it has for the work."""

import math
import os
import tempfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from peers import Unsupported

CONTRIB = "com.microsoft"
OPSET = 24  # the newest with the operator Attention whose revisions onnxruntime has kernels for
version = ort.__version__
options = ort.SessionOptions()
options.inter_op_num_threads = 1


def prepare(w):
    options.intra_op_num_threads = w.threads
    if w.train:
        raise Unsupported("no training")
    if w.dropout:
        raise Unsupported("no dropout at inference")


class Graph:
    """A model in the making: inputs with their values, constants, nodes."""

    def __init__(self):
        self.rng = np.random.default_rng(1)
        self.feeds, self.constants, self.nodes, self.shapes = {}, {}, [], {}
        self.int8 = []  # operators with products of 8-bit integers, with scales of inputs found as it runs

    def normal(self, *shape, scale=1.0):
        return self.rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def input(self, name, value):
        self.feeds[name] = value
        return name

    def constant(self, name, value):
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op, inputs, output, domain="", more=(), **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output, *more], domain=domain, **attributes))
        return output

    def linear(self, x, name, n_in, n_out):
        weight = self.constant(f"{name}.weight", self.normal(n_in, n_out, scale=1 / math.sqrt(n_in)))
        bias = self.constant(f"{name}.bias", np.zeros(n_out, np.float32))
        return self.node("Add", [self.node("MatMul", [x, weight], f"{name}.product"), bias], f"{name}.out")

    def call(self, *outputs, shared=None):
        """A function that runs the model once, made when it is first called: that fails if a kernel is missing. Inputs
        and outputs stay where they are; shared names outputs that are written into an input's memory."""
        run = None

        def call():
            nonlocal run
            run = run or self.bind(outputs, shared or {})
            run()

        return call

    def bind(self, outputs, shared):
        kind = helper.np_dtype_to_tensor_dtype
        graph = helper.make_graph(
            self.nodes,
            "work",
            [helper.make_tensor_value_info(n, kind(x.dtype), x.shape) for n, x in self.feeds.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
            [numpy_helper.from_array(x, n) for n, x in self.constants.items()],
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)], ir_version=11
        )
        if self.int8:
            with tempfile.TemporaryDirectory() as path:
                path = os.path.join(path, "int8.onnx")
                more = {"DefaultTensorType": TensorProto.FLOAT}  # behind operators that ONNX does not know
                quantize_dynamic(model, path, self.int8, weight_type=QuantType.QInt8, extra_options=more)
                model = onnx.load(path)
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        values = {n: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(x)) for n, x in self.feeds.items()}
        binding = session.io_binding()
        for n, x in values.items():
            binding.bind_ortvalue_input(n, x)
        own = {} if shared else dict(zip(outputs, session.run_with_ort_values(list(outputs), values)))
        for n in outputs:
            if n in shared:
                binding.bind_ortvalue_output(n, values[shared[n]])
            elif n in own:
                binding.bind_ortvalue_output(n, own[n])
            else:
                binding.bind_output(n)
        return lambda: session.run_with_iobinding(binding)


def gemm(w):
    g = Graph()
    a, b = g.input("a", g.normal(w.lq, w.e)), g.input("b", g.normal(w.e, w.lk))
    g.node("MatMul", [a, b], "out")
    return {"MatMul": g.call("out")}


def visible(w):
    """The boolean mask, and whether to say causal instead."""
    seen = w.seen(np)
    return seen, w.causal and seen is None


def standard(g, w, q, k, v, out, seen, causal, outputs=1, **heads):
    """ai.onnx Attention, on [B H L E] or, with the numbers of heads, on [B L H·E]."""
    inputs = [q, k, v]
    if seen is not None:
        inputs.append(g.input("seen", np.broadcast_to(seen, (w.b, 1, w.lq, w.lk)).copy()))
    more = []
    if w.weights:
        more, heads = ["", "", "weights"], heads | {"qk_matmul_output_mode": 3}
    return g.node("Attention", inputs, out, more=more, is_causal=int(causal), **heads)


def contrib(g, w, q, k, v, out, seen, causal):
    """com.microsoft MultiHeadAttention, on [B L H·E]."""
    inputs = [q, k, v]
    if w.mask == "padding" and not w.causal:
        keys = (np.arange(w.lk)[None] < np.array(w.lengths())[:, None]).astype(np.int32)
        inputs += ["", g.input("padding", keys)]
    elif seen is not None:
        bias = np.where(np.broadcast_to(seen, (w.b, 1, w.lq, w.lk)), 0, np.finfo(np.float32).min).astype(np.float32)
        inputs += ["", "", g.input("bias", bias)]
    return g.node("MultiHeadAttention", inputs, out, CONTRIB, num_heads=w.h, unidirectional=int(causal))


def sdpa(w):
    seen, causal = visible(w)
    g = Graph()
    q = g.input("q", g.normal(w.b, w.h, w.lq, w.e))
    k, v = g.input("k", g.normal(w.b, w.g, w.lk, w.e)), g.input("v", g.normal(w.b, w.g, w.lk, w.v))
    standard(g, w, q, k, v, "out", seen, causal)
    found = {"Attention": g.call("out", *(["weights"] if w.weights else []))}
    if w.g == w.h and not w.weights:
        g = Graph()
        q = g.input("q", g.normal(w.b, w.lq, w.h * w.e))
        k, v = g.input("k", g.normal(w.b, w.lk, w.h * w.e)), g.input("v", g.normal(w.b, w.lk, w.h * w.v))
        contrib(g, w, q, k, v, "out", seen, causal)
        found["MultiHeadAttention"] = g.call("out")
    return found


def decode(w):
    found = sdpa(w)
    if w.lq == 1 and w.mask == "none" and w.v == w.e and not w.weights:
        g = Graph()
        names = [g.input("q", g.normal(w.b, 1, w.h * w.e))]
        names += [g.input(n, g.normal(w.b, 1, w.g * w.e)) for n in ("k", "v")]
        names += [g.input(n, g.normal(w.b, w.g, w.lk, w.e)) for n in ("past_k", "past_v")]
        names.append(g.input("last", np.full(w.b, w.lk - 1, np.int32)))
        names.append(g.input("total", np.array([w.lk], np.int32)))
        g.node("GroupQueryAttention", names, "out", CONTRIB, ["now_k", "now_v"], num_heads=w.h, kv_num_heads=w.g)
        # The cache has room for the step's key and value, which are written in place.
        shared = {"now_k": "past_k", "now_v": "past_v"}
        found["GroupQueryAttention"] = g.call("out", "now_k", "now_v", shared=shared)
    return found


def linear(w):
    """com.microsoft LinearAttention, on [B L H·E]."""
    g = Graph()
    keys = g.normal(w.b, w.lq, w.g, w.e)
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    inputs = [g.input("q", g.normal(w.b, w.lq, w.h * w.e)), g.input("k", keys.reshape(w.b, w.lq, -1))]
    inputs += [g.input("v", g.normal(w.b, w.lq, w.g * w.v)), ""]
    decay, beta = "", ""
    if w.rule.startswith("gated"):
        if w.decay == "head":
            raise Unsupported("constant decays")
        each = w.e if w.decay == "element" else 1
        decay = g.input("decay", -0.1 * np.abs(g.normal(w.b, w.lq, w.g * each)))
    if w.rule.endswith("delta"):
        beta = g.input("beta", 1 / (1 + np.exp(g.normal(w.b, w.lq, w.g))))
    heads = {"q_num_heads": w.h, "kv_num_heads": w.g}
    g.node("LinearAttention", [*inputs, decay, beta], "out", CONTRIB, ["state"], update_rule=w.rule, **heads)
    return {"LinearAttention": g.call("out", "state")}


def written_out(w):
    """What a score needs for which there is no operator."""
    if w.g != w.h:
        raise Unsupported("heads that share keys")
    if w.weights:
        raise Unsupported("not written")
    seen = w.seen(np)
    if w.causal and seen is None:
        seen = np.tri(w.lq, w.lk, dtype=bool)[None, None]
    g = Graph()
    q = g.input("q", g.normal(w.b, w.h, w.lq, w.e))
    k, v = g.input("k", g.normal(w.b, w.h, w.lk, w.e)), g.input("v", g.normal(w.b, w.h, w.lk, w.v))
    return g, seen, q, k, v


def additive(w):
    g, seen, q, k, v = written_out(w)
    scale = 1 / math.sqrt(w.e)
    q = g.node("MatMul", [q, g.constant("wq", g.normal(w.e, w.width, scale=scale))], "mapped_q")
    k = g.node("MatMul", [k, g.constant("wk", g.normal(w.e, w.width, scale=scale))], "mapped_k")
    q = g.node("Unsqueeze", [q, g.constant("behind", np.array([3]))], "q1")
    k = g.node("Unsqueeze", [k, g.constant("before", np.array([2]))], "k1")
    features = g.node("Tanh", [g.node("Add", [q, k], "sum")], "features")
    scores = g.node("MatMul", [features, g.constant("wv", g.normal(w.width, scale=1 / math.sqrt(w.width)))], "scores")
    return {"Add, Tanh, MatMul": pooled(g, scores, seen, v)}


def pooled(g, scores, seen, v):
    if seen is not None:
        low = g.constant("low", np.float32(np.finfo(np.float32).min))
        scores = g.node("Where", [g.input("seen", seen), scores, low], "masked")
    g.node("MatMul", [g.node("Softmax", [scores], "weights", axis=-1), v], "out")
    return g.call("out")


def gaussian(w):
    g, seen, q, k, v = written_out(w)
    q = g.node("Unsqueeze", [q, g.constant("behind", np.array([3]))], "q1")
    k = g.node("Unsqueeze", [k, g.constant("before", np.array([2]))], "k1")
    factors = g.constant("w", (1 + g.normal(w.e, scale=0.1)) / np.float32(math.sqrt(w.e)))
    d = g.node("Mul", [g.node("Sub", [q, k], "difference"), factors], "scaled")
    sums = g.node("ReduceSum", [g.node("Mul", [d, d], "squares"), g.constant("last", np.array([-1]))], "sums", keepdims=0)
    scores = g.node("Mul", [sums, g.constant("half", np.float32(-0.5))], "scores")
    return {"Sub, Mul, ReduceSum": pooled(g, scores, seen, v)}


def mha(w):
    seen, causal = visible(w)

    def layer(attention):
        g = Graph()
        x = kv = g.input("x", g.normal(w.b, w.lq, w.width))
        if w.lq != w.lk:
            kv = g.input("kv", g.normal(w.b, w.lk, w.width))
        q = g.linear(x, "q", w.width, w.h * w.e)
        k, v = g.linear(kv, "k", w.width, w.g * w.e), g.linear(kv, "v", w.width, w.g * w.v)
        attention(g, q, k, v)
        g.linear("mixed", "out", w.h * w.v, w.width)
        return g.call("out.out", *(["weights"] if w.weights else []))

    def by_standard(g, q, k, v):
        standard(g, w, q, k, v, "mixed", seen, causal, q_num_heads=w.h, kv_num_heads=w.g)

    found = {"MatMul, Add, Attention": layer(by_standard)}
    if w.g == w.h and not w.weights:
        by_contrib = lambda g, q, k, v: contrib(g, w, q, k, v, "mixed", seen, causal)
        found["MatMul, Add, MultiHeadAttention"] = layer(by_contrib)
    if w.g == w.h and w.lq == w.lk and w.v == w.e and seen is None and not w.weights:
        # What the library's own optimiser makes of such a layer.
        g = Graph()
        x = g.input("x", g.normal(w.b, w.lq, w.width))
        n = 3 * w.h * w.e
        weight = g.constant("qkv", g.normal(w.width, n, scale=1 / math.sqrt(w.width)))
        bias = g.constant("qkv.bias", np.zeros(n, np.float32))
        g.node("Attention", [x, weight, bias], "mixed", CONTRIB, num_heads=w.h, unidirectional=int(causal))
        g.linear("mixed", "out", w.h * w.v, w.width)
        found["packed Attention"] = g.call("out.out")
    return found


def encode(w):
    """The layers of BERT, with the operators that the library's own optimiser makes of them, and with standard ones."""

    if w.storage == "bfloat16":
        raise Unsupported("no kernels for bfloat16 on CPUs")

    def model(fused):
        g = Graph()
        if w.storage == "int8":
            g.int8 = ["MatMul", "Attention"] if fused else ["MatMul"]
        table = g.constant("table", g.normal(w.vocab, w.width, scale=0.03))
        positions = g.constant("positions", g.normal(w.lq, w.width, scale=0.03))
        ids = g.input("ids", g.rng.integers(w.vocab, size=(w.b, w.lq)))
        gains = {"epsilon": 1e-12}
        weight, bias = g.constant("gain", np.ones(w.width, np.float32)), g.constant("shift", np.zeros(w.width, np.float32))

        def norm(x, y, out):
            if fused:
                return g.node("SkipLayerNormalization", [x, y, weight, bias], out, CONTRIB, **gains)
            return g.node("LayerNormalization", [g.node("Add", [x, y], out + ".sum"), weight, bias], out, **gains)

        x = norm(g.node("Gather", [table, ids], "words"), g.node("Expand", [positions, g.constant(
            "shape", np.array([w.b, w.lq, w.width]))], "places"), "embedded")  # fmt: skip
        for i in range(w.layers):
            at = f"{i}."
            if fused:
                qkv = g.constant(at + "qkv", g.normal(w.width, 3 * w.width, scale=0.03))
                zero = g.constant(at + "qkv.bias", np.zeros(3 * w.width, np.float32))
                y = g.node("Attention", [x, qkv, zero], at + "mixed", CONTRIB, num_heads=w.h)
            else:
                q, k, v = (g.linear(x, at + n, w.width, w.width) for n in "qkv")
                y = standard(g, w, q, k, v, at + "mixed", None, False, q_num_heads=w.h, kv_num_heads=w.h)
            x = norm(g.linear(y, at + "out", w.width, w.width), x, at + "norm1")
            if fused:
                product = g.node("MatMul", [x, g.constant(at + "up", g.normal(w.width, w.hidden, scale=0.03))], at + "product")
                y = g.node("BiasGelu", [product, g.constant(at + "up.bias", np.zeros(w.hidden, np.float32))], at + "hidden", CONTRIB)
            else:
                y = g.node("Gelu", [g.linear(x, at + "up", w.width, w.hidden)], at + "hidden")
            x = norm(g.linear(y, at + "down", w.hidden, w.width), x, at + "norm2")
        return g.call(x)

    return {"packed Attention, SkipLayerNormalization, BiasGelu": model(True), "MatMul, Attention, Gelu": model(False)}


operations = {
    "gemm": gemm, "sdpa": sdpa, "decode": decode, "additive": additive, "gaussian": gaussian, "mha": mha, "encode": encode,
    "linear": linear,
}  # fmt: skip
