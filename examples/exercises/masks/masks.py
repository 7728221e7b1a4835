"""Exercise of lesson 6: a mask of packed documents.

Fill in the function; python examples/exercises/check.py 6 says what is wrong.
"""

import torch


def visible(n, left, ends):
    """Returns a mask [n n], true where a query may attend to a key.

    It sees its own key and at most left keys before it, of the same document. ends is a list of
    where documents end, the last one at n.
    """
    ...  # your code
