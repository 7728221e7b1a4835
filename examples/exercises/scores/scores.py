"""Exercise of lesson 2: scaled dot-product attention with a valid length.

Fill in the function; python examples/exercises/check.py 2 says what is wrong.
"""

import torch


def attend(q, k, v, valid):
    """Returns the outputs of scaled dot-product attention.

    The queries are q [Lq E], the keys k [Lk E], the values v [Lk V]. Keys from valid on are
    padding: no query may attend to them.
    """
    ...  # your code
