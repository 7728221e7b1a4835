"""attn's translators in PyTorch, which read and write directories of attn. See docs/scale-training.md."""

from .files import Run, load, save
from .recurrent import attn_name

__all__ = ["Run", "attn_name", "load", "save"]
