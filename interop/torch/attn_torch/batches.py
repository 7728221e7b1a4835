"""The batches of train.Trainer: the same pairs in the same order, determined by seed and epoch."""


class PCG:
    """The PCG generator of Go's math/rand/v2, and the functions of its Rand that order the pairs."""

    def __init__(self, seed1, seed2):
        self.state = seed1 << 64 | seed2

    def uint64(self):
        self.state = (self.state * 0x2360ED051FC65DA44385DF649FCCF645 + 0x5851F42D4C957F2D14057B7EF767814F) % 2**128
        hi, lo = self.state >> 64, self.state % 2**64
        hi ^= hi >> 32
        hi = hi * 0xDA942042E4DD58B5 % 2**64
        hi ^= hi >> 48
        return hi * (lo | 1) % 2**64

    def below(self, n):
        if n & (n - 1) == 0:
            return self.uint64() & (n - 1)
        product = self.uint64() * n
        while product % 2**64 < 2**64 % n:
            product = self.uint64() * n
        return product >> 64

    def shuffle(self, items):
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]


def batches(lengths, size, seed, epoch):
    """Returns the indices of the pairs of each step of an epoch, given the lengths of each pair's source and target."""
    rng = PCG(seed, epoch)
    order = list(range(len(lengths)))
    rng.shuffle(order)
    result = []
    for at in range(0, len(order), size * 64):
        pool = sorted(order[at : at + size * 64], key=lambda i: lengths[i])
        result += [pool[i : i + size] for i in range(0, len(pool), size)]
    rng.shuffle(result)
    return result
