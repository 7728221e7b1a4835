"""Writes models/testdata/seq2seq/*: tiny encoder-decoders with random weights, and the results of transformers for them.

Each directory is a model in the form of the Hugging Face Hub: config.json, model.safetensors and, where a case has one,
generation_config.json. Beside them, golden.safetensors has

    in.ids, in.lens          the sources [B L], padded, and their lengths
    in.targets, in.target_lens   the inputs of the decoder [B M], and their lengths
    want.logits              [B M V]
    want.hidden.N            the states of the decoder, [B M D]: 0 is the embeddings, the last one is after the final norm
    want.source.N            the states of the encoder, [B L D]
    want.encoder.N, want.decoder.N, want.cross.N   the attention weights of layer N, [B H L L], [B H M M], [B H M L]
    want.tokens              50 tokens that follow by greedy generation with a KV cache from the first source
    want.beam                the result of a beam of 4 for the first source, at most 12 tokens, without the end token
    grad.NAME                of the mean cross-entropy of the next token: Σ g_i·cos(1+i) and √Σ g_i² of the gradient of
                             the parameter NAME

in float32, computed in float64, with the largest error of the same model in float32 as budget.NAME in the metadata.
Weights are drawn until changes of up to a unit in the last place change the results by less than the tests' tolerance;
otherwise a test would measure how much a model amplifies rounding. Results at padding are 0.

    pip install -r testdata/requirements.txt
    python testdata/models_seq2seq.py           write the files
    python testdata/models_seq2seq.py --check   compare the files with what would be written; exit 1 on a difference
"""

import contextlib
import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import golden  # sets what must be set before torch is loaded

import safetensors.torch
import torch
import torch.nn.functional as F
import transformers
from transformers import BartConfig, BartForConditionalGeneration, M2M100Config, M2M100ForConditionalGeneration, MarianConfig, MarianMTModel
from transformers import MT5Config, MT5ForConditionalGeneration, T5Config, T5ForConditionalGeneration, UMT5Config, UMT5ForConditionalGeneration

torch.set_num_threads(1)
transformers.logging.set_verbosity_error()
TARGET = Path(__file__).resolve().parent.parent / "models" / "testdata" / "seq2seq"
STEPS = 50  # greedy tokens
LENS, TARGET_LENS = [11, 5], [3, 7]
MARGIN = 1e-3  # by which each of them is ahead of the next best, far more than float32 errs
VOCABULARY = 31
PAD = {"marian": VOCABULARY - 1, "t5": 0, "umt5": 0, "m2m_100": 1}


def bart(**more):
    sizes = dict(vocab_size=VOCABULARY, d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
                 decoder_attention_heads=2, encoder_ffn_dim=17, decoder_ffn_dim=19, max_position_embeddings=61,
                 forced_eos_token_id=None)
    return BartConfig(**{**sizes, **more})


def m2m100(**more):
    sizes = dict(vocab_size=VOCABULARY, d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
                 decoder_attention_heads=2, encoder_ffn_dim=17, decoder_ffn_dim=19, max_position_embeddings=61)
    return M2M100Config(**{**sizes, **more})


def marian(**more):
    sizes = dict(vocab_size=VOCABULARY, d_model=12, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
                 decoder_attention_heads=2, encoder_ffn_dim=17, decoder_ffn_dim=19, max_position_embeddings=61,
                 pad_token_id=PAD["marian"], decoder_start_token_id=PAD["marian"], eos_token_id=0, forced_eos_token_id=None,
                 activation_function="swish", scale_embedding=True)
    return MarianConfig(**{**sizes, **more})


def t5(kind=T5Config, **more):
    sizes = dict(vocab_size=VOCABULARY, d_model=12, d_kv=5, d_ff=17, num_layers=2, num_heads=3,
                 relative_attention_num_buckets=8, relative_attention_max_distance=13, decoder_start_token_id=PAD["t5"])
    return kind(**{**sizes, **more})


class Case:
    """A model's configuration and the form of its files."""

    def __init__(self, config, names=None, rewrite=None, generation=None, various=5, tied=False):
        self.config = config
        self.names = names or (lambda tensors: tensors)  # changes the tensors of the file
        self.rewrite = rewrite or (lambda config: config)  # changes config.json
        self.generation = generation  # of generation_config.json
        self.various = various  # different tokens among those that are generated, at least
        self.kind = {"bart": BartForConditionalGeneration, "m2m_100": M2M100ForConditionalGeneration, "marian": MarianMTModel, "mt5": MT5ForConditionalGeneration,
                     "t5": T5ForConditionalGeneration, "umt5": UMT5ForConditionalGeneration}[config.model_type]
        self.tied = tied or getattr(config, "scale_decoder_outputs", False)  # the matrices of a T5
        self.t5 = config.model_type.endswith("t5")
        self.m2m = config.model_type == "m2m_100"

    def untied(self):
        return self.t5 and not self.tied


def old_marian(config):
    """config.json in the form of Opus-MT."""
    config |= {"_num_labels": 3, "add_bias_logits": False, "add_final_layer_norm": False, "bad_words_ids": [[VOCABULARY - 1]],
               "bos_token_id": 0, "classif_dropout": 0.0, "extra_pos_embeddings": VOCABULARY, "force_bos_token_to_be_generated": False,
               "max_length": 512, "normalize_before": False, "normalize_embedding": False, "num_beams": 6, "num_hidden_layers": 2,
               "static_position_embeddings": True}
    for key in "decoder_vocab_size", "share_encoder_decoder_embeddings", "tie_word_embeddings", "is_decoder":
        del config[key]
    return config


def old_m2m100(config):
    """config.json in the form of m2m100_418M."""
    del config["tie_word_embeddings"]
    return {**config, "early_stopping": True, "gradient_checkpointing": False, "max_length": 200, "num_beams": 5,
            "num_hidden_layers": config["encoder_layers"], "tokenizer_class": "M2M100Tokenizer"}


def m2m100_copies(tensors):
    """Old files contain the embeddings under each of their names, and tables of positions, which are computed."""
    table = tensors["model.shared.weight"]
    copies = {f"model.{stack}.embed_tokens.weight": table.clone() for stack in ("encoder", "decoder")}
    unused = {f"model.{stack}.embed_positions.weights": torch.ones(63, table.shape[1]) for stack in ("encoder", "decoder")}
    return {**tensors, **copies, **unused, "lm_head.weight": table.clone()}


def with_copies(tensors):
    """Old files contain tied tensors under each of their names, and the table of positions."""
    table = tensors["model.shared.weight"]
    copies = {f"model.{stack}.embed_tokens.weight": table.clone() for stack in ("encoder", "decoder")}
    probe = MarianMTModel(marian()).model
    places = {f"model.{stack}.embed_positions.weight": getattr(probe, stack).embed_positions.weight.detach().clone() for stack in ("encoder", "decoder")}
    return {**tensors, **copies, **places, "lm_head.weight": table.clone()}


def old_t5(config):
    """config.json as transformers 4 wrote it: it ties other tensors than version 5."""
    config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
    same = ["num_decoder_layers"] if config["num_decoder_layers"] == config["num_layers"] else []
    for key in "dense_act_fn", "is_gated_act", *same:
        del config[key]
    return {**config, "n_positions": 512, "output_past": True, "task_specific_params": {"summarization": {"prefix": "summarize: "}}}


def old_umt5(config):
    """config.json in the form of umt5-small."""
    return {**config, "tie_word_embeddings": False, "scalable_attention": True}


def t5_copies(tensors):
    """T5's first files contain an unused table, and the embeddings only under the encoder's name."""
    unused = torch.ones(8, 3)
    tensors = dict(tensors, **{"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": unused})
    tensors["encoder.embed_tokens.weight"] = tensors.pop("shared.weight")
    return tensors


CASES = {
    "bart": Case(bart()),
    "bart_scaled": Case(bart(scale_embedding=True, activation_function="relu", decoder_layers=1), generation={"forced_bos_token_id": 5}),
    "m2m100": Case(m2m100(), generation={"forced_bos_token_id": 7}),
    "m2m100_old": Case(m2m100(encoder_layers=3, activation_function="swish", scale_embedding=False), m2m100_copies, old_m2m100,
                       generation={"forced_bos_token_id": 9, "max_length": 200}),
    "m2m100_untied": Case(m2m100(d_model=13, encoder_attention_heads=1, decoder_attention_heads=13, pad_token_id=4, tie_word_embeddings=False)),
    "marian": Case(marian(), generation={"bad_words_ids": [[PAD["marian"]], [5, 7]], "num_beams": 6}),
    "marian_old": Case(marian(decoder_attention_heads=4, activation_function="relu", scale_embedding=False), with_copies, old_marian, various=2),
    "marian_two_vocabularies": Case(marian(decoder_vocab_size=37, share_encoder_decoder_embeddings=False, encoder_layers=3, decoder_layers=2,
                                           activation_function="gelu", d_model=13, encoder_attention_heads=1, decoder_attention_heads=13)),
    "mt5": Case(t5(MT5Config, tie_word_embeddings=False)),
    "t5": Case(t5(num_layers=3, num_decoder_layers=2), t5_copies, old_t5),
    "t5_1.1": Case(t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False), rewrite=old_t5),
    "umt5": Case(t5(UMT5Config), rewrite=old_umt5),
    "umt5_tied": Case(t5(UMT5Config, num_layers=3, num_decoder_layers=1, feed_forward_proj="relu"), tied=True),
    "t5_saved_by_5": Case(t5(feed_forward_proj="gated-silu", tie_word_embeddings=False, num_layers=1)),
}


@contextlib.contextmanager
def precision(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def draw(name, shape, seed, t5):
    """Random weights, all of which change the results; norms and biases are also random."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    if "norm" in name and name.endswith("weight"):
        return 1 + 0.4 * x
    # Embeddings are small compared with the layers' outputs; otherwise, with tied embeddings, each token follows itself.
    if "embed_tokens" in name or "shared" in name or name == "final_logits_bias":
        return 0.2 * x if t5 or name == "final_logits_bias" else 0.5 * x
    if len(shape) == 1 or "bias" in name:
        return 0.6 * x if t5 else 0.2 * x
    if name.endswith("Attention.q.weight"):
        return 0.5 * x / shape[1]**0.5  # scores are not divided by √E
    return x / shape[1]**0.5  # larger ones amplify rounding, a hundred times where they are 2.5 times as large


def build(case, weights, dtype):
    with precision(dtype):
        config = case.kind.config_class.from_dict(case.config.to_dict())
        config._attn_implementation = "eager"
        model = case.kind(config)
        if case.untied():
            model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
            if case.config.model_type == "umt5":
                model.config.tie_word_embeddings = False  # as in transformers 4, which does not divide its logits by √D
        state = model.state_dict()
        for name, x in weights.items():
            state[name].copy_(x.to(dtype))
        if not case.t5:
            if not case.m2m:
                model.final_logits_bias = model.final_logits_bias.to(dtype)
            for stack in model.model.encoder, model.model.decoder:
                if case.config.model_type == "marian":  # sinusoids are float32 numbers in both
                    table = stack.embed_positions.create_weight().to(torch.float32)
                    stack.embed_positions.weight.data = table.to(dtype)
                if case.m2m:
                    stack.embed_positions.weights = m2m100_positions(stack.embed_positions).to(torch.float32).to(dtype)
                stack.embed_tokens.padding_idx = None  # or else the gradient of the first token would be left out
    return model.eval()


def m2m100_positions(places):
    """The table of positions, whose angles transformers computes in float32."""
    n, half = places.weights.shape[0], places.embedding_dim // 2
    angles = torch.arange(n)[:, None].double() * torch.exp(torch.arange(half).double() * (-math.log(10000) / (half - 1)))
    table = torch.cat([angles.sin(), angles.cos(), torch.zeros(n, places.embedding_dim % 2)], 1).double()
    assert (table - places.weights.double())[places.padding_idx + 1 :].abs().max() < 1e-5
    table[places.padding_idx] = 0
    return table


def tensors_of(case, seed):
    """Returns the weights in float32, as the file stores them."""
    model = build(case, {}, torch.float32)
    fixed = "embed_positions" if case.config.model_type == "marian" else "none"
    shapes = {name: p.shape for name, p in model.named_parameters() if fixed not in name}
    if not case.t5 and not case.m2m:
        shapes["final_logits_bias"] = model.final_logits_bias.shape
    return {name: draw(name, shape, 1000 * seed + i, case.t5).to(torch.float32) for i, (name, shape) in enumerate(shapes.items())}


def generate(case, model, ids):
    """Returns the tokens that follow and what a beam finds, or None if the tokens are not clear enough, or all alike.

    In float32, as transformers has banned words in no other type; the margin makes up for it.
    """
    g = model.generation_config
    start = case.config.decoder_start_token_id
    settings = case.generation or {}
    forced, skip = settings.get("forced_bos_token_id"), 2 if "forced_bos_token_id" in settings else 1  # tokens not written
    banned = settings["bad_words_ids"] if "bad_words_ids" in settings else [[PAD[case.config.model_type]]] if case.rewrite is old_marian else None
    common = dict(attention_mask=torch.ones_like(ids[None]), do_sample=False, use_cache=True, decoder_start_token_id=start, bad_words_ids=banned,
                  forced_bos_token_id=forced)
    with torch.no_grad():
        g.eos_token_id = g.pad_token_id = g.forced_eos_token_id = None
        y = model.generate(ids[None], max_new_tokens=STEPS + skip - 1, output_scores=True, return_dict_in_generate=True, **common)
        best = torch.stack(y.scores)[skip - 1:, 0].topk(2).values
        margin = (best[:, 0] - best[:, 1]).min().item()
        if margin < MARGIN or y.sequences[0, skip:].unique().numel() < case.various:
            return None
        end = case.config.eos_token_id
        g.eos_token_id, g.pad_token_id = end, start
        beam = model.generate(ids[None], max_new_tokens=11 + skip, num_beams=4, length_penalty=1.0, early_stopping=False, **common)[0]
    beam = beam[skip:].tolist()
    return y.sequences[0, skip:], torch.tensor(beam[:beam.index(end)] if end in beam else beam)


def run(case, model, ids, targets, dtype):
    """Returns all results except the tokens, in one precision."""
    out = {}
    real, written = (torch.arange(x.shape[1])[None] < torch.tensor(lens)[:, None] for x, lens in ((ids, LENS), (targets, TARGET_LENS)))
    with precision(dtype):
        y = model(ids, attention_mask=real.long(), decoder_input_ids=targets, output_hidden_states=True, output_attentions=True, use_cache=False)
        out["want.logits"] = y.logits * written[..., None]
        for n, x in enumerate(y.decoder_hidden_states):
            out[f"want.hidden.{n}"] = x * written[..., None]
        for n, x in enumerate(y.encoder_hidden_states):
            out[f"want.source.{n}"] = x * real[..., None]
        for name, all, queries, keys in (("encoder", y.encoder_attentions, real, real), ("decoder", y.decoder_attentions, written, written),
                                         ("cross", y.cross_attentions, written, real)):
            for n, x in enumerate(all):
                out[f"want.{name}.{n}"] = x * queries[:, None, :, None] * keys[:, None, None]
        labels = targets[:, 1:].masked_fill(~written[:, 1:], -100)
        F.cross_entropy(y.logits[:, :-1].flatten(0, 1), labels.flatten()).backward()
        for name, p in model.named_parameters():
            if case.config.model_type == "marian" and "embed_positions" in name:
                continue
            if p.grad is None:  # the table that is shared where matrices are tied
                continue
            g = p.grad.flatten()
            direction = torch.cos(1 + torch.arange(len(g), dtype=torch.float64)).to(dtype)
            out["grad." + name] = torch.stack([g @ direction, g.norm()])
    return {name: x.detach() for name, x in out.items()}


def nudged(weights, seed):
    generator = torch.Generator().manual_seed(seed)
    return {name: x * (1 + (torch.rand(x.shape, generator=generator) * 2 - 1) * 2**-23) for name, x in weights.items()}


def close(exact, rough, budget):
    """Whether results are within the tolerance of the tests (tensortest.Close)."""
    floor = 2**-20 * max(1, exact.abs().max().item())
    return (exact - rough.double()).abs().max().item() <= 2 * budget + floor


def search(name, case):
    """Draws weights until the tokens differ from each other, do not depend on rounding, and rounding is not amplified."""
    for seed in range(1, 2000):
        weights = tensors_of(case, seed)
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(1, VOCABULARY - 1, (2, max(LENS)), generator=generator)
        targets = torch.randint(1, VOCABULARY - 1, (2, max(TARGET_LENS)), generator=generator)
        targets[:, 0] = case.config.decoder_start_token_id
        if case.m2m:  # padding tokens in a source change positions; in a target, transformers counts them in two ways
            ids[:, 2] = case.config.pad_token_id
            targets[targets == case.config.pad_token_id] = 3
        found = generate(case, build(case, weights, torch.float32), ids[0])
        if found is None or len(found[1]) < 3:
            continue
        tokens, beam = found
        exact = run(case, build(case, weights, torch.float64), ids, targets, torch.float64)
        rough, *others = [run(case, build(case, w, torch.float32), ids, targets, torch.float32) for w in [weights, *(nudged(weights, n) for n in range(3))]]
        budgets = {key: (x - rough[key].double()).abs().max().item() for key, x in exact.items()}
        if not all(close(x, other[key], budgets[key]) for key, x in exact.items() for other in others):
            continue
        exact["want.tokens"], exact["want.beam"] = tokens, beam
        return weights, ids, targets, exact, budgets
    sys.exit(f"{name}: no seed gives tokens that are clear enough")


def write(folder, name, case):
    folder.mkdir(parents=True)
    weights, ids, targets, exact, budgets = search(name, case)
    config = case.config.to_dict()
    config["architectures"] = [case.kind.__name__]
    config["dtype"] = "float32"
    (folder / "config.json").write_text(json.dumps(case.rewrite(config), indent=1, sort_keys=True) + "\n")
    if case.generation:
        (folder / "generation_config.json").write_text(json.dumps(case.generation) + "\n")
    tensors = {n: x.contiguous() for n, x in case.names(weights).items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})

    settings = {"case": name, "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    tensors = {"in.ids": ids, "in.lens": torch.tensor(LENS), "in.targets": targets, "in.target_lens": torch.tensor(TARGET_LENS)}
    for key, x in exact.items():
        if x.is_floating_point():
            assert torch.isfinite(x).all(), f"{name}: {key} is not finite"
            settings[f"budget.{key}"] = f"{budgets[key]:.3g}"
            x = x.to(torch.float32)
        tensors[key] = x
    arrays = {key: x.contiguous().numpy() for key, x in tensors.items()}
    (folder / "golden.safetensors").write_bytes(golden.encode(arrays, settings))


def main():
    names = [a for a in sys.argv[1:] if a != "--check"] or CASES
    check = "--check" in sys.argv
    changed = sorted({p.name for p in TARGET.iterdir()} - CASES.keys()) if TARGET.exists() else []
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / name
            write(made, name, CASES[name])
            now = {p.name: p.read_bytes() for p in made.iterdir()}
            there = TARGET / name
            before = {p.name: p.read_bytes() for p in there.iterdir()} if there.exists() else {}
            if golden.same(now, before):
                continue
            changed.append(name)
            if not check:
                shutil.rmtree(there, ignore_errors=True)
                shutil.copytree(made, there)
                print(name, sum(map(len, now.values())), "bytes", flush=True)
    if check and changed:
        sys.exit(f"differ: {' '.join(changed)}")
    print(f"{len(list(names))} models, {len(changed)} changed")


if __name__ == "__main__":
    main()
