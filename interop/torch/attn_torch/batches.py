"""The batches of train.Trainer: the same pairs in the same order, determined by seed and epoch."""

import dataclasses
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import torch


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


@dataclasses.dataclass
class Share:
    """The pairs of a step that one process computes, in one tensor: it moves to a device in one copy."""

    numbers: torch.Tensor  # sources [B Ls], their lengths [B], and targets [B Lt], flat; padding is 0
    rows: int
    source: int  # Ls
    weight: float  # of the loss: 0 if the process has no pair
    targets: int  # target tokens of all processes
    tokens: int  # source and target tokens of all processes
    last: bool  # whether the step is the last of its epoch

    def split(self, numbers):
        """Returns sources, lengths and targets, as views of numbers or of a copy on a device."""
        size = self.rows * self.source
        source, lengths, write = numbers.tensor_split((size, size + self.rows))
        return source.view(self.rows, -1), lengths, write.view(self.rows, -1)


def shares(run, epochs, rank, world, pinned):
    """Yields the share of a process of each remaining step, in pinned memory for a copy that does not wait."""
    sizes, ids = run.sizes, run.ids
    begins = sizes.sum(1).cumsum(0) - sizes.sum(1)

    def fill(out, begins, lengths):
        place = torch.arange(out.shape[1])
        rows = ids[(begins[:, None] + place).clamp_(max=len(ids) - 1)]
        out.copy_(rows.masked_fill_(place >= lengths[:, None], 0))

    lengths = list(map(tuple, sizes.tolist()))
    for epoch in range(run.position["epoch"], epochs):
        steps = batches(lengths, run.settings["batch"], run.settings["seed"], epoch)
        for step in range(run.position["step"] if epoch == run.position["epoch"] else 0, len(steps)):
            batch = steps[step]
            # A process without a pair computes one with weight 0: every process must take part in the reduction.
            mine = torch.tensor(batch[rank::world] or batch[:1])
            begin, size, targets = begins[mine], sizes[mine], sizes[batch, 1].sum().item()
            longest = size.amax(0).tolist()
            numbers = torch.empty(len(mine) * (1 + sum(longest)), dtype=torch.long, pin_memory=pinned)
            weight = float(rank < len(batch)) / targets
            share = Share(
                numbers, len(mine), longest[0], weight, targets, sizes[batch].sum().item(), step + 1 == len(steps)
            )
            source, length, write = share.split(numbers)
            fill(source, begin, size[:, 0])
            length.copy_(size[:, 0])
            fill(write, begin + size[:, 0], size[:, 1])
            yield share


def ahead(items, device, most=8):
    """Yields the items of an iterator. A thread computes up to most of them before they are needed."""

    def begin():
        if device.type == "cuda":
            torch.cuda.set_device(device)  # threads begin with the first device

    with ThreadPoolExecutor(1, initializer=begin) as thread:
        waiting = deque(thread.submit(next, items, None) for _ in range(most))
        while (item := waiting.popleft().result()) is not None:
            waiting.append(thread.submit(next, items, None))
            yield item
