"""Exercise of lesson 8: the delta rule with a decay, token by token.

Fill in the function; python examples/exercises/check.py 8 says what is wrong.
"""

import torch


def delta(q, k, v, decay, beta):
    """Returns what each query reads from the state after its token [L V], without the scale 1/√E.

    The state is 0 at first. A token lets it shrink by the factor exp(decay), and then replaces the
    share beta of what its key reads by its value. q and k are [L E], v is [L V], decay and beta
    are [L].
    """
    ...  # your code
