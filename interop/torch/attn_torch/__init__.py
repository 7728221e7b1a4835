"""The translators of attn train in PyTorch. They read and write the same directories. See docs/scale-training.md."""

from .files import Run, load, save
from .recurrent import attn_name

__all__ = ["Run", "attn_name", "load", "save"]
