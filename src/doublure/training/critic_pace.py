"""How many steps a critic takes for one of the generator's: fixed, or more while it cannot keep up.

Bie, Kamath and Zhang ("Private GANs, revisited", TMLR 2023) let n_critic climb a ladder while the critic's accuracy on
generated rows, averaged over the generator's steps, stays at or below a threshold. Those rows are artificial and the
critic is what was paid for, so that looking costs nothing; the number of noisy steps is the plan's either way.
"""

from __future__ import annotations

import torch
from torch import Tensor

LADDER = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)

_PAST = 0.9


class CriticPace:
    """The number of critic steps in the next iteration.

    Args:
        n_critic: At the start.
        threshold: Share of generated rows that the critic has to tell; None: the number stays.
        patience: Generator steps between two rungs, at least.
    """

    def __init__(self, n_critic: int, *, threshold: float | None, patience: int) -> None:
        self.n_critic = n_critic
        self.accuracy = 1.0
        self._threshold = threshold
        self._patience = patience
        self._since = 0

    def saw(self, scores: Tensor) -> None:
        """Take note of the critic's scores ``(B,)`` for generated rows; below zero it took a row for what it is."""
        if self._threshold is None or not len(scores):
            return
        told = float((scores < 0).double().mean())
        self._since += 1
        # The first iterations are averaged evenly, so that the start does not weigh on them.
        self.accuracy += (told - self.accuracy) * max(1 - _PAST, 1 / self._since)
        if self._since < self._patience or self.accuracy > self._threshold:
            return
        higher = [rung for rung in LADDER if rung > self.n_critic]
        if higher:
            self.n_critic, self._since = higher[0], 0

    def state(self) -> Tensor:
        """Return what a resumed run needs, ``(3,)`` float64."""
        return torch.tensor([self.n_critic, self.accuracy, self._since], dtype=torch.float64)

    def restore(self, state: Tensor) -> None:
        """Take up a kept state."""
        n_critic, self.accuracy, since = (float(value) for value in state)
        self.n_critic, self._since = int(n_critic), int(since)
