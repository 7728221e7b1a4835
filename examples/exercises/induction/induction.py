"""Exercise of lesson 9: which head did it, and where?

Fill in the function; python examples/exercises/check.py 9 says what is wrong.
"""

import torch


def restored(heads, positions, loss):
    """Returns the share of the difference between B and A that a patch restores [heads positions].

    A patch puts what one head returns in A, at one position, into B. The share is 0 if the loss of
    B stays, and 1 if it falls to that of A. loss(sequence, patched) returns the loss of the right
    answer for sequence "A" or "B", as a float. patched is a list of (head, position), empty if left
    out: these heads return what they return in the other sequence.
    """
    ...  # your code
