"""Exercise of lesson 3: what a decoder reads while it is trained.

Fill in the function; python examples/exercises/check.py 3 says what is wrong.
"""

import torch


def shifted(targets, begin):
    """Returns what a decoder has written before each token of targets [B L].

    It begins with the token begin, and has the shape of the targets.
    """
    ...  # your code
