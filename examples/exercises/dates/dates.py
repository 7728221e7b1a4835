"""Exercise of lesson 5: which heads matter least?.

Fill in the function; python examples/exercises/check.py 5 says what is wrong.
"""


def order(heads, loss):
    """Returns a list of the numbers of the heads, the least important one first.

    The importance of a head is the increase in loss when it alone is removed. loss(on) returns the
    loss with the heads whose element of the list on is true.
    """
    ...  # your code
