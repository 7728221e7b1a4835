"""Loads directories that attn has pruned with transformers, and compares them with the originals.

    ATTN_PRUNED_CASES=/tmp/pruned go test -count=1 -run 'TestWriteMasked|TestCompact' ./probe
    python testdata/pruned_check.py /tmp/pruned

The logits of a pruned directory must equal those of the original with hooks that set the outputs of removed heads to 0,
and the logits that attn has computed. The exit code is 1 if any differ. With "pruned_heads" in its
config.json, some families can be read by transformers 4 and by no other version: such a directory is run with
4.57.3 too.
"""

import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import logging

logging.set_verbosity_error()
logging.disable_progress_bar()

VERSION = int(transformers.__version__.split(".")[0])

# The model types for which transformers 4 applies "pruned_heads".
PRUNED_HEADS = ("bert", "distilbert", "roberta", "xlm-roberta", "camembert", "gpt2")

# The last map of the attention, in the families that there are: of encoders and decoders, and the three kinds of
# encoder-decoders.
LAST_MAPS = ("attention.output.dense", "attention.out_lin", "attention.attn.o", "attn.c_proj", "self_attn.o_proj",
             "linear_attn.out_proj", "linear_attn.o_proj")
MAMBA_MAPS = ("mamba.out_proj", "mixer.out_proj")
OF_KIND = {
    "encoder.self": ("encoder", ("self_attn.out_proj", "SelfAttention.o")),
    "decoder.self": ("decoder", ("self_attn.out_proj", "SelfAttention.o")),
    "decoder.cross": ("decoder", ("encoder_attn.out_proj", "EncDecAttention.o")),
}


def load(directory):
    config = transformers.AutoConfig.from_pretrained(directory)
    kind = getattr(transformers, config.architectures[0])
    eager = {"attn_implementation": "eager"}
    if VERSION > 4:
        eager["experts_implementation"] = "eager"
    model, info = kind.from_pretrained(directory, dtype=torch.float32, output_loading_info=True, **eager)
    for problem in ("missing_keys", "mismatched_keys", "unexpected_keys"):
        if info[problem]:
            raise SystemExit(f"{directory}: {problem} {info[problem]}")
    return model.eval()


def logits(model, ids, targets):
    more = {} if targets is None else {"decoder_input_ids": torch.tensor(targets)}
    with torch.no_grad():
        out = model(input_ids=ids, **more)
    return out.logits if "logits" in out else out.seq_relationship_logits


def last_maps(model, kind):
    modules = list(model.named_modules())
    if not model.config.is_encoder_decoder:
        ends = LAST_MAPS
        if kind == "decoder.mamba":
            ends = MAMBA_MAPS
        elif model.config.model_type != "falcon_h1":  # which has Mamba-2 beside attention
            ends += MAMBA_MAPS
        return [module for name, module in modules if name.endswith(ends)]
    stack, ends = OF_KIND[kind]
    return [module for name, module in modules if stack in name.split(".") and name.endswith(ends)]


def without(model, removed, sizes):
    """The model with hooks that set the outputs of heads to 0."""
    for head in removed:
        stack, layer, which = head["layer"].split(".")
        maps, size = last_maps(model, f"{stack}.{which}"), sizes[head["layer"]]
        at = slice(head["number"] * size, (head["number"] + 1) * size)

        def hook(module, inputs, at=at):
            x = inputs[0].clone()
            x[..., at] = 0
            return (x,)

        maps[int(layer)].register_forward_pre_hook(hook)
    return model


def is_read(config):
    """Whether this version of transformers can read a directory with this config.json."""
    lost = config.get("pruned_heads")
    if not lost:
        return True
    heads = config.get("num_attention_heads") or config.get("n_heads") or config.get("n_head")
    return VERSION < 5 and config["model_type"] in PRUNED_HEADS and all(len(x) < heads for x in lost.values())


def differences(path):
    """Returns the largest differences of a directory's logits from the original's with gates, and from attn's."""
    case = json.loads(path.read_text())
    ids = torch.tensor(case["input_ids"])
    targets = case["decoder_input_ids"]
    got = logits(load(path.parent), ids, targets)
    gated = logits(without(load(case["original"]), case["removed"], case["head_size"]), ids, targets)
    others = [gated]
    if VERSION > 4 or "rope_parameters" not in (path.parent / "config.json").read_text():  # which 4 does not know
        others.append(torch.tensor(case["logits"]).reshape(case["shape"]))
    return [((got - other).abs().max() / other.abs().max().clamp(min=1)).item() for other in others]


def main():
    worst, cases, strays = 0.0, sorted(Path(sys.argv[1]).glob("*/case.json")), []
    if not cases:
        raise SystemExit("no cases")
    for path in cases:
        loads = is_read(json.loads((path.parent / "config.json").read_text()))
        try:
            off = differences(path)
        except (Exception, SystemExit) as e:
            if isinstance(e, KeyboardInterrupt) or loads:
                raise
            print(f"{path.parent.name}: refused by transformers {VERSION}, {type(e).__name__}")
            continue
        if not loads:
            strays.append(path.parent.name)
        print(f"{path.parent.name}: {off[0]:.1e} from the original with gates, " + "".join(f"{x:.1e} from attn" for x in off[1:]))
        worst = max(worst, *off)
    if strays:
        raise SystemExit(f"loaded, but should not be: {strays}")
    sys.exit(not worst < 2e-5)


main()
