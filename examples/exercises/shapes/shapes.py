"""Exercise of lesson 4: split vectors into heads.

Fill in the function; python examples/exercises/check.py 4 says what is wrong.
"""


def split(x, heads):
    """Returns the heads [H L E] of vectors x [L D], with E = D/H."""
    ...  # your code
