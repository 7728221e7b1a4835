"""Exercise of lesson 7: find a head by its pattern.

Fill in the function; python examples/exercises/check.py 7 says what is wrong.
"""

import torch


def previous(weights):
    """Returns the layer and the number of the head, as two ints.

    It is the head whose tokens, from the second one on, give the token before them the most weight
    on average. The weights are [layers heads Lq Lk].
    """
    ...  # your code
