"""Blocks of columns that are missing together, and the blocks whose patterns are counted.

A table of patterns has two cells to the power of its blocks, and a survey has a hundred columns that may be missing.
They fall into few blocks: a filter question skips all that follow it. A block is one bit of a pattern. It is declared
(``missing_together``), or found among neighbours, by noisy counts of which of two adjacent columns are missing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt
from scipy import optimize

from doublure.schema.rules.rule import Rule

Floats = npt.NDArray[np.float64]

MOST_BLOCKS = 16
"""Most blocks whose patterns are counted in one table; with more, neighbours are compared first."""
_CLEAR = 4.0
"""Deviations of noise by which both columns of a block are seen to be missing."""
_APART, _WITHIN_NOISE = 0.05, 2.0
"""The share of a block's missing rows that may have one column alone, and deviations of noise beside it."""
_NUMBERED = re.compile(r"[\W_]*\d+[a-zA-Z]?$")
"""The end of a name that numbers it among others of one stem."""
_EXPLAINED = 0.95
"""The share of all rows, and of those that miss a column, that patterns with a clear count hold if it is to stay.

Rows of other patterns count as the most similar clear one, so that a column that is missing by itself would hardly
ever be missing. Such a column leaves the table, and is drawn from its own counts."""
_SURE = 100.0
"""Precision of the number of all rows, in that of a pattern: it is known from all columns together."""


@dataclass(frozen=True, kw_only=True)
class MissingBlock:
    """Columns that are missing together.

    Attributes:
        parts: Their places in a compact record; the first stands for all.
        mark: The least number of a missing cell of the first.
        weight: Cells that it decides: more count first.
    """

    parts: tuple[int, ...]
    mark: float
    weight: float = 0.0


def declared_groups(rules: Iterable[Rule], names: Collection[str]) -> list[tuple[str, ...]]:
    """Return columns that may be missing in groups that are declared to be missing together, most alone."""
    group_of: dict[str, tuple[str, ...]] = {}
    for rule in rules:
        own = tuple(name for name in rule.missing_as_one if name in names)
        group_of |= dict.fromkeys(own, own)
    return list(dict.fromkeys(group_of.get(name, (name,)) for name in names))


def join_neighbours(
    blocks: Sequence[MissingBlock], names: Sequence[str], pairs: Sequence[Floats], noise: float
) -> list[MissingBlock]:
    """Return blocks with neighbours joined that are missing in the same rows, up to noise.

    Neighbours of one stem, ``Q28_1`` to ``Q28_8``, are judged together: the mean of k counts has less noise than one.

    Args:
        blocks: In the order of the columns.
        names: The name of each block's first column.
        pairs: For each block but the last, counts ``(2, 2)`` of rows by whether its own first column, and that of the
            next block, are missing.
        noise: Standard deviation of each count.
    """
    stems = [_NUMBERED.sub("", name) for name in names]
    links = [_alike([counts], noise) for counts in pairs]
    for _, own in groupby(range(len(blocks)), key=lambda place: stems[place]):
        first, *others = own
        if others and _alike(pairs[first : first + len(others)], noise):
            links[first : first + len(others)] = [True] * len(others)
    groups = [[0]]
    for place, link in enumerate(links, start=1):
        groups[-1:] = [[*groups[-1], place]] if link else [groups[-1], [place]]
    ends = [(max(0, group[0] - 1), group[-1] + 1) for group in groups]
    beside = [pairs[first:last] for first, last in ends]
    return [_joined([blocks[place] for place in group], near) for group, near in zip(groups, beside, strict=True)]


def _joined(blocks: Sequence[MissingBlock], pairs: Sequence[Floats]) -> MissingBlock:
    """Return one block; its weight is by the rows that miss its columns, as the pairs that it is in have them."""
    parts = tuple(part for block in blocks for part in block.parts)
    rows = float(np.mean([counts[1, 1] + (counts[0, 1] + counts[1, 0]) / 2 for counts in pairs]))
    return MissingBlock(parts=parts, mark=blocks[0].mark, weight=len(parts) * max(rows, 0.0))


def _alike(pairs: Sequence[Floats], noise: float) -> bool:
    """Return whether two columns, or neighbours in a run, are missing in the same rows as far as noise lets see."""
    mean, noise = np.mean(pairs, axis=0), noise / math.sqrt(len(pairs))
    both, one_alone = mean[1, 1], mean[0, 1] + mean[1, 0]
    return bool(both > _CLEAR * noise and one_alone < _APART * both + _WITHIN_NOISE * math.sqrt(2) * noise)


def heaviest(blocks: Sequence[MissingBlock]) -> list[MissingBlock]:
    """Return the blocks that are counted: those that decide most cells, in the order of the columns."""
    chosen = sorted(blocks, key=lambda block: -block.weight)[:MOST_BLOCKS]
    return [block for block in blocks if any(block is each for each in chosen)]


@dataclass(frozen=True, kw_only=True, eq=False)
class MissingRows:
    """The rows that miss each block, by the columns' own counts.

    Attributes:
        rows: ``(q,)``.
        variance: ``(q,)`` of their noise.
        columns: ``(q,)`` number of columns of each block.
        every: Number of all rows.
    """

    rows: Floats
    variance: Floats
    columns: Floats
    every: float

    def of_bits(self, bits: Sequence[int]) -> MissingRows:
        """Return those of some blocks."""
        at = list(bits)
        return MissingRows(rows=self.rows[at], variance=self.variance[at], columns=self.columns[at], every=self.every)


def explained_bits(counts: Floats, noise: float, missing: MissingRows) -> tuple[tuple[int, ...], Floats, float]:
    """Return which bits of patterns stay, so that clear patterns hold nearly all rows; none, where noise hides all.

    Args:
        counts: ``(2^q,)`` noisy counts.
        noise: Standard deviation of each.
        missing: Rows that miss each block. Noise of so many cells hides them in the patterns' own sums.

    Returns:
        The places of the bits that stay, the counts of their patterns, and the standard deviation of those.
    """
    bits = tuple(range(int(counts.size).bit_length() - 1))
    while bits and _unexplained(counts, noise, missing.of_bits(bits)) > 0:
        wider = noise * math.sqrt(2)
        summed = [_without(counts, bit) for bit in range(len(bits))]
        left = [bits[:gone] + bits[gone + 1 :] for gone in range(len(bits))]
        # A block that leaves is torn into its columns.
        torn = [(missing.columns[bit] - 1) * missing.rows[bit] for bit in bits]
        unexplained = [
            _unexplained(each, wider, missing.of_bits(some)) for each, some in zip(summed, left, strict=True)
        ]
        gone = int(np.argmin(np.add(unexplained, torn)))
        counts, noise, bits = summed[gone], wider, left[gone]
    return bits, counts, noise


def clear_patterns(counts: Floats, noise: float, missing: MissingRows) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the clear patterns ``(m,)``, at least one, and their likely rows, which agree with the rows of each block.

    Rows of other patterns count as the most similar clear one, but their blocks' shares are known from the columns.
    Least squares over all three: the patterns' counts, the blocks' rows, and the number of all rows.

    Args:
        counts: ``(2^q,)`` noisy counts.
        noise: Standard deviation of each.
        missing: Rows that miss each block.
    """
    kept = np.flatnonzero(_clear(counts, noise, missing))
    kept = kept if len(kept) else np.array([int(np.argmax(np.minimum(counts, _most_rows(missing))))])
    shown = pattern_bits(kept, len(missing.rows))
    sure = noise / math.sqrt(_SURE)
    sides = np.vstack([np.eye(len(kept)) / noise, shown.T / np.sqrt(missing.variance)[:, None],
                       np.ones((1, len(kept))) / sure])  # fmt: skip
    wanted = np.concatenate([counts[kept] / noise, missing.rows / np.sqrt(missing.variance), [missing.every / sure]])
    return kept, optimize.nnls(sides, wanted)[0]


def pattern_bits(patterns: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return whether each of the first bits ``(m, count)`` of patterns ``(m,)`` is set."""
    return np.asarray((patterns[:, None] >> np.arange(count)) & 1)


def _without(counts: Floats, bit: int) -> Floats:
    """Return the counts of patterns without one bit; of the axes of all bits, the last is the first bit."""
    axes = int(counts.size).bit_length() - 1
    return np.asarray(counts.reshape((2,) * axes).sum(axis=axes - 1 - bit)).ravel()


def _unexplained(counts: Floats, noise: float, missing: MissingRows) -> float:
    """Return the cells that clear patterns leave open, a share and noise allowed.

    These are the columns of rows beyond those in clear patterns, and those of each block's missing rows.
    """
    clear = np.flatnonzero(_clear(counts, noise, missing))
    shown = pattern_bits(clear, len(missing.rows))
    spread = np.sqrt(missing.variance + shown.sum(0) * noise**2)
    unseen = _EXPLAINED * missing.rows - counts[clear] @ shown - _WITHIN_NOISE * spread
    rows = _EXPLAINED * missing.every - float(counts[clear].sum())
    return float(missing.columns @ np.maximum(unseen, 0.0) + missing.columns.sum() * max(rows, 0.0))


def _clear(counts: Floats, noise: float, missing: MissingRows) -> npt.NDArray[np.bool_]:
    """Return which counts stand out: of n that are noise alone, the largest is about √(2 log n) deviations.

    A sum over many patterns has much noise, and the largest of many sums is noise. A pattern is never given more rows
    than the columns' own counts leave to it.
    """
    return np.minimum(counts, _most_rows(missing)) > math.sqrt(2 * math.log(counts.size)) * noise


def _most_rows(missing: MissingRows) -> Floats:
    """Return the most rows ``(2^q,)`` of each pattern by its blocks alone (Fréchet's bound), noise allowed."""
    spread, most = _WITHIN_NOISE * np.sqrt(missing.variance), np.full(1, np.inf)
    for rows, noise in zip(missing.rows, spread, strict=True):  # the first block is the lowest bit
        most = np.concatenate([np.minimum(most, missing.every - rows + noise), np.minimum(most, rows + noise)])
    return most
