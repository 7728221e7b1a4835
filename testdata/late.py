"""Writes models/testdata/late_*/: tiny models of late interaction, and their vectors and scores by sentence-transformers.

    pip install -r testdata/requirements.txt -r testdata/sentences_requirements.txt    # in a virtual environment
    python testdata/late.py [CASE …]          write the directories
    python testdata/late.py --check [CASE …]  compare the files with what would be written; exit 1 on a difference

MultiVectorEncoder also reads the files of PyLate and of the library of ColBERT.
"""

import json
import sys

import models  # sets what must be set before torch is loaded
from models import BERT, CASES, randomize, write_sorted

import sentence_transformers
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import Pooling
from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] a cat dog sat sleeps on the mat ##s query : who ? ##ing run ##ner . , and it in sun [unused0] [unused1]".split()
QUERIES = ["Who sat?", "the cat, the dog and the runner in the sun on the mat", ""]
DOCUMENTS = ["The cat sat on the mat.", "Who? The runner, and the dog: it runs in the sun, and the cat sleeps.", ",", ""]
WIDTH = BERT["hidden_size"]
EAGER = dict(model_kwargs={"attn_implementation": "eager", "dtype": torch.float32})


def base(name, folder, most, added=()):
    """Writes a BERT and its tokenizer."""
    config = transformers.BertConfig(**BERT | dict(vocab_size=len(WORDS) + len(added), max_position_embeddings=29))
    config._attn_implementation = "eager"
    net = transformers.BertModel(config, add_pooling_layer=False)
    randomize(name, net, torch.float16)
    net.half().save_pretrained(folder)
    t = Tokenizer(WordPiece({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_tokens([AddedToken(w) for w in added])
    marks = {f"{k}_token": f"[{k.upper()}]" for k in ("pad", "unk", "cls", "sep", "mask")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=t, model_max_length=most, **marks).save_pretrained(folder)


def dump(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n")


def golden(name, folder):
    """Writes the vectors of queries and documents, and their scores."""
    results = {}
    for precision in (torch.float32, torch.float64):
        m = MultiVectorEncoder(str(folder), device="cpu", **EAGER).eval().to(precision)
        q, d = m.encode_query(QUERIES), m.encode_document(DOCUMENTS)
        got = {f"want.query.{i}": x for i, x in enumerate(q)} | {f"want.document.{i}": x for i, x in enumerate(d)}
        # Scores of the float64 vectors are computed here, since similarity computes in float32.
        score = lambda a, b: (a @ b.T).max(1).values.sum() / (len(a) if m.similarity_fn_name == "meanmaxsim" else 1)
        got["want.scores"] = torch.stack([torch.stack([score(a, b) for b in d]) for a in q])
        assert (m.similarity(q, d) - got["want.scores"]).abs().max() < 1e-4
        results[precision] = got
    single, exact = results[torch.float32], results[torch.float64]
    write_sorted({k: x.float().contiguous() for k, x in exact.items()}, folder / "golden_late.safetensors", {
        "case": name, "sentence_transformers": sentence_transformers.__version__, "transformers": transformers.__version__,
        "torch": torch.__version__.split("+")[0], "queries": json.dumps(QUERIES), "documents": json.dumps(DOCUMENTS),
    } | {f"budget.{k}": repr(float((single[k].double() - x).abs().max())) for k, x in exact.items()})


def encoder(name, behind, prompts, score="maxsim", **lengths):
    """Registers a MultiVectorEncoder."""

    def write(folder):
        base(name, folder / "base", 24)
        modules = [Transformer(str(folder / "base"), **EAGER, **lengths), *behind()]
        for i, layer in enumerate(modules[1:]):
            randomize(f"{name}/{i}", layer, torch.float16)
        MultiVectorEncoder(modules=modules, device="cpu", prompts=prompts, similarity_fn_name=score).save(str(folder), create_model_card=False)
        for path in (folder / "base").iterdir():
            path.unlink()
        (folder / "base").rmdir()
        golden(name, folder)

    CASES[name] = write


def pylate(name, config, *, bias=False, added=("[Q] ", "[D] "), kind="ColBERT"):
    """Registers a model of PyLate."""

    def write(folder):
        base(name, folder, 24, added)
        layer = Dense(WIDTH, 7, bias=bias, activation_function=torch.nn.Identity())
        randomize(f"{name}/1", layer, torch.float16)
        (folder / "1_Dense").mkdir()
        save_file({k: x.contiguous() for k, x in layer.state_dict().items()}, folder / "1_Dense" / "model.safetensors")
        dump(folder / "1_Dense" / "config.json", {
            "in_features": WIDTH, "out_features": 7, "bias": bias, "activation_function": "torch.nn.modules.linear.Identity"})
        dump(folder / "modules.json", [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}])
        dump(folder / "sentence_bert_config.json", {"max_seq_length": 23, "do_lower_case": False})
        dump(folder / "config_sentence_transformers.json", {
            "__version__": {"sentence_transformers": "4.0.2"}, "prompts": {}, "default_prompt_name": None, "similarity_fn_name": "MaxSim",
        } | ({"model_type": kind} if kind else {}) | config)
        golden(name, folder)

    CASES[name] = write


def colbert(name, metadata):
    """Registers a model of the library of ColBERT."""

    def write(folder):
        base(name, folder, 24)
        tensors = {f"bert.{k}": x for k, x in load_file(folder / "model.safetensors").items()}
        layer = torch.nn.Linear(WIDTH, 9, bias=False)
        randomize(f"{name}/linear", layer, torch.float16)
        save_file(tensors | {"linear.weight": layer.weight.detach().half().contiguous()}, folder / "model.safetensors", {"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        dump(folder / "config.json", config | {"architectures": ["HF_ColBERT"]})
        if metadata is not None:
            (folder / "artifact.metadata").write_text(json.dumps(metadata, indent=2) + "\n")
        golden(name, folder)

    CASES[name] = write


def m3(name):
    """Registers a model like BGE-M3, whose maps are beside its pipeline. Their outputs are computed as in its library, FlagEmbedding."""

    def write(folder):
        base(name, folder / "base", 24)
        spoken = json.loads((folder / "base" / "tokenizer_config.json").read_text())
        dump(folder / "base" / "tokenizer_config.json", spoken | {"eos_token": "[SEP]"})
        pipeline = SentenceTransformer(modules=[Transformer(str(folder / "base"), **EAGER), Pooling(WIDTH, "cls"), Normalize()], device="cpu")
        pipeline.save(str(folder), create_model_card=False)
        for path in (folder / "base").iterdir():
            path.unlink()
        (folder / "base").rmdir()
        maps = {n: torch.nn.Linear(WIDTH, size) for n, size in (("sparse_linear", 1), ("colbert_linear", 8))}
        for n, layer in maps.items():
            randomize(f"{name}/{n}", layer, torch.float16)
            if n == "sparse_linear":
                torch.save(layer.half().state_dict(), folder / f"{n}.pt")
            else:
                save_file(layer.half().state_dict(), folder / f"{n}.safetensors")
        results = {}
        for precision in (torch.float32, torch.float64):
            m = SentenceTransformer(str(folder), device="cpu", **EAGER).eval().to(precision)
            got = {"want.vectors": m.encode(DOCUMENTS, convert_to_tensor=True)}
            for i, text in enumerate(DOCUMENTS):
                given = m.preprocess([text])
                with torch.no_grad():
                    h = m[0](given)["token_embeddings"][0]
                    got[f"want.tokens.{i}"] = torch.nn.functional.normalize(maps["colbert_linear"].to(precision)(h[1:]), dim=-1)
                    w = torch.relu(maps["sparse_linear"].to(precision)(h))[:, 0]
                sparse = torch.zeros(len(WORDS), dtype=precision)
                for id, x in zip(given["input_ids"][0].tolist(), w):
                    if id not in (0, 1, 2, 3):
                        sparse[id] = max(sparse[id], x)
                got[f"want.sparse.{i}"] = sparse
            results[precision] = got
        single, exact = results[torch.float32], results[torch.float64]
        write_sorted({k: x.float().contiguous() for k, x in exact.items()}, folder / "golden_m3.safetensors", {
            "case": name, "sentence_transformers": sentence_transformers.__version__, "transformers": transformers.__version__,
            "torch": torch.__version__.split("+")[0], "documents": json.dumps(DOCUMENTS),
        } | {f"budget.{k}": repr(float((single[k].double() - x).abs().max())) for k, x in exact.items()})

    CASES[name] = write


CASES.clear()
m3("m3")
encoder("late_chain", lambda: [
    Dense(WIDTH, 11, activation_function=torch.nn.GELU(), module_input_name="token_embeddings", use_residual=True),
    Dense(11, 11, bias=False, activation_function=torch.nn.Tanh(), module_input_name="token_embeddings", use_residual=True),
    Dense(11, 6, activation_function=torch.nn.Identity(), module_input_name="token_embeddings"),
    MultiVectorMask([",", ".", "nowhere"], skiplist_tasks=["query", "document"]), Normalize("token_embeddings"),
], {"query": "query: ", "document": "the "}, "meanmaxsim", query_length=11, document_length=15,
    query_expansion={"strategy": "min", "attend": True, "token": "and", "length": 9})
encoder("late_fixed", lambda: [
    MultiVectorMask(["?"]), Normalize("token_embeddings"), Dense(WIDTH, 5, module_input_name="token_embeddings")],
    {}, query_expansion={"strategy": "fixed", "length": 8})
pylate("late_pylate", {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 10, "document_length": 14,
                       "attend_to_expansion_tokens": False})
pylate("late_pylate_old", {"query_prefix": "query:", "document_prefix": "[unused1]", "query_length": 12, "attend_to_expansion_tokens": True,
                           "skiplist_words": ["the", "."]}, bias=True, added=(), kind=None)
pylate("late_pylate_short", {"query_prefix": "[Q] ", "document_prefix": "", "query_length": 10, "document_length": 14,
                             "do_query_expansion": False, "skiplist_words": []})
colbert("late_colbert", {"dim": 9, "query_maxlen": 13, "doc_maxlen": 17, "mask_punctuation": True, "attend_to_mask_tokens": False,
                         "interaction": "colbert", "similarity": "cosine", "query_token_id": "[unused0]", "doc_token_id": "[unused1]",
                         "query_token": "[Q]", "doc_token": "[D]", "nbits": 2, "checkpoint": "x", "meta": {"version": "colbert-v0.4"}})

if __name__ == "__main__":
    sys.exit(models.main(sys.argv[1:]))
