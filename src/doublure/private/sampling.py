"""Samplers of lots, the units that take part in one step.

A sampler's ``sampling`` says how its lots are drawn, so that the mechanism can refuse an accountant that assumes
otherwise. It keeps no random state: each lot takes a fresh 128-bit key from the operating system and forgets it, so
there is no seed to set, save or guess, and a resumed run or a forked process draws lots of its own. Which units
were drawn, and how many, is private: it is what amplifies the guarantee.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.private.entropy import freshly_keyed

Lot = npt.NDArray[np.int64]


class _Sampler:
    """A number of units that is neither shown nor saved."""

    __slots__ = ("_population",)

    def __init__(self, population: int) -> None:
        if population < 0:
            raise SettingError("must not be negative", field="population", remedy="count the units")
        self._population = population

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is never saved or copied: its population is private; make a new one")


class PoissonSampler(_Sampler):
    """Draws every unit into every lot independently, with probability ``sample_rate``.

    Guarantee: lots for add/remove neighbours, as Poisson subsampling assumes (Abadi et al. 2016, §3.1; Mironov, Talwar,
    Zhang 2019). The lot's size k is drawn from Binomial(n, q), then k different units evenly: a lot S has probability
    C(n, k) q^k (1 − q)^(n − k) / C(n, k) = q^|S| (1 − q)^(n − |S|), which is exactly n independent coins, at the cost
    of k instead of n.

    ====================  ====================================================
    no unit               every lot is empty
    an empty lot          is a lot: the step adds its noise and counts
    ``sample_rate`` is 1  every unit in every lot
    ====================  ====================================================

    Args:
        population: Number of units n, private.
        sample_rate: q in (0, 1], public and fixed by the plan.

    Raises:
        SettingError: A setting is out of range.
    """

    __slots__ = ("sample_rate",)
    sampling: ClassVar[Literal["poisson"]] = "poisson"

    def __init__(self, population: int, sample_rate: float) -> None:
        super().__init__(population)
        if not 0 < sample_rate <= 1:
            raise SettingError("must lie above 0 and at most at 1", field="sample_rate", remedy="try 0.01")
        self.sample_rate = sample_rate

    def lot(self) -> Lot:
        """Return the units of one lot ``(k,)``, ascending, k from 0 to n."""
        generator = freshly_keyed()
        return _choose(generator, self._population, int(generator.binomial(self._population, self.sample_rate)))

    def __repr__(self) -> str:
        return f"PoissonSampler(sample_rate={self.sample_rate})"


class FixedSizeSampler(_Sampler):
    """Draws lots of exactly ``size`` units without replacement.

    For the Bayesian accountant, whose statement is about an average and not about neighbours. Lots of one
    size priced as Poisson lots are a known way to claim too little ε, and the mechanism refuses them.

    Args:
        population: Number of units.
        size: Units a lot.

    Raises:
        SettingError: ``size`` is negative or exceeds the population.
    """

    __slots__ = ("size",)
    sampling: ClassVar[Literal["without-replacement"]] = "without-replacement"

    def __init__(self, population: int, size: int) -> None:
        super().__init__(population)
        if not 0 <= size <= population:
            raise SettingError("must lie between 0 and the number of units", field="size", remedy="take a smaller lot")
        self.size = size

    def lot(self) -> Lot:
        """Return the units of one lot ``(size,)``, ascending."""
        return _choose(freshly_keyed(), self._population, self.size)

    def __repr__(self) -> str:
        return f"FixedSizeSampler(size={self.size})"


def _choose(generator: np.random.Generator, population: int, size: int) -> Lot:
    """Return ``size`` different units, every set equally likely, ascending, since a lot has no order."""
    if size == population:
        return np.arange(population, dtype=np.int64)
    chosen: Lot = generator.choice(population, size, replace=False, shuffle=False)
    chosen.sort()
    return chosen
