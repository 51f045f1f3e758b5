"""Fault tests of synthetic tables, for the faults of a broken pipeline.

=============================  =========================================================================================
fault                          statistic of a row
=============================  =========================================================================================
another unit, another scale    a number is above, or below, the median of a correct run; or outside its 98 in 100
a constant feed                a cell is the most frequent one of its own run
a lost value or class          the value itself, less than half as frequent
cells that were lost           a cell is missing
two columns exchanged          their two cells are likelier after a swap
a join gone wrong              a forest takes it for a row whose cells were drawn from different rows
labels that are wrong          a forest predicts another value of the target
rows that were copied          all its cells equal those of another row of its run
=============================  =========================================================================================

Likelihoods, quantiles and forests come from rows of the first correct run. Rows that were all copied equally often
change no share, and are not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from doublure.errors import printable
from doublure.measures.fault_tests import FaultStatistic, Mask, copy_tests, numeric_shift_tests, swap_tests
from doublure.measures.tables.coding import Coded, Coder
from doublure.support.arrays import Floats

_LISTED = 20
_FREQUENT = 0.02
_TREES = 60
_LEAF = 5


def row_fault_statistics(coder: Coder, training: Coded, seen: Sequence[Coded], seed: int) -> dict[str, FaultStatistic]:
    """Return the statistics by a stable name.

    Args:
        coder: Reads the schema.
        training: Rows of the first correct run.
        seen: Other rows of the inspected run, then of each correct one.
        seed: Fixes the forests.
    """
    found: dict[str, FaultStatistic] = {}
    for name in coder.names:
        found |= _column(coder, name, training, seen)
    for pair in _exchangeable(coder):
        found |= _exchanged(coder, pair, training, seen)
    return found | _torn(training, seen, seed) | _mislabelled(coder, training, seen, seed) | _copied(seen)


# -- one column --------------------------------------------------------------------------------------------------------


def _column(coder: Coder, name: str, training: Coded, seen: Sequence[Coded]) -> dict[str, FaultStatistic]:
    place, shown = coder.names.index(name), printable(name)
    cells = [each.codes[:, place] for each in seen]
    found = {
        f"constant_{name}": FaultStatistic(
            clause=f"have the most frequent {shown} of their run",
            meaning="A constant feed: one value stands where many should.",
            shown=[_most_frequent(each.numbers.get(name, own)) for each, own in zip(seen, cells, strict=True)],
        ),
        f"missing_{name}": FaultStatistic(
            clause=f"have no {shown}",
            meaning="Cells were lost.",
            shown=[own == coder.sizes[place] - 1 for own in cells],
        ),
    }
    if name in training.numbers:
        return found | numeric_shift_tests(name, training.numbers[name], [each.numbers[name] for each in seen], "is")
    values = coder.labels(name)[:-1]
    shares = np.bincount(training.codes[:, place], minlength=len(values) + 1) / max(1, len(training))
    often = [code for code in range(len(values)) if shares[code] >= _FREQUENT][:_LISTED]
    return found | {
        f"rare_{name}_{code}": FaultStatistic(
            clause=f"have {printable(values[code])} as {shown}",
            meaning="A lost value: fewer than in correct runs.",
            shown=[own == code for own in cells],
            fewer=True,
        )
        for code in often
    }


def _most_frequent(values: np.ndarray[tuple[int], np.dtype[np.float64 | np.int32]]) -> Mask:
    there, counts = np.unique(values, return_counts=True)
    mask: Mask = values == there[counts.argmax()]
    return mask


# -- two columns -------------------------------------------------------------------------------------------------------


def _exchangeable(coder: Coder) -> Iterator[tuple[str, str]]:
    """Yield pairs of columns that could each hold the other's cells."""
    for one, other in combinations(coder.names, 2):
        first, second = coder.columns[one], coder.columns[other]
        if not first.alike(second):
            continue
        if first.bounded:
            (low, high, _), (least, most, _) = coder.bounds(one), coder.bounds(other)
            if min(high, most) > max(low, least):
                yield one, other
        elif coder.labels(one) == coder.labels(other):
            yield one, other


def _exchanged(
    coder: Coder, pair: tuple[str, str], training: Coded, seen: Sequence[Coded]
) -> dict[str, FaultStatistic]:
    def cells(rows: Coded) -> tuple[Floats, Floats]:
        places = (coder.names.index(name) for name in pair)
        found = (rows.numbers.get(n, rows.codes[:, at].astype(float)) for n, at in zip(pair, places, strict=True))
        first, second = found
        return first, second

    return swap_tests(pair, cells(training), [cells(each) for each in seen])


# -- whole rows --------------------------------------------------------------------------------------------------------


def _torn(training: Coded, seen: Sequence[Coded], seed: int) -> dict[str, FaultStatistic]:
    if len(training.names) < 2:
        return {}
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng([seed, 11])
    loose = np.stack([rng.permutation(column) for column in training.codes.T], axis=1)
    trained = np.concatenate([training.codes, loose])
    which = np.repeat([0, 1], len(training))
    forest = RandomForestClassifier(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1).fit(trained, which)
    return {
        "torn": FaultStatistic(
            clause="look as if their cells were from different rows",
            meaning="A join or a sort went wrong, so that columns do not belong together.",
            shown=[forest.predict(each.codes) == 1 for each in seen],
            learned=True,
        )
    }


def _mislabelled(coder: Coder, training: Coded, seen: Sequence[Coded], seed: int) -> dict[str, FaultStatistic]:
    from sklearn.ensemble import RandomForestClassifier

    found = {}
    for name in coder.schema.with_role("target"):
        if name not in coder.names or coder.columns[name].bounded or len(coder.names) < 2:
            continue
        place = coder.names.index(name)
        classes = training.codes[:, place]
        if len(np.unique(classes)) < 2:
            continue
        rest = [np.delete(each.codes, place, axis=1) for each in (training, *seen)]
        forest = RandomForestClassifier(_TREES, min_samples_leaf=_LEAF, random_state=seed, n_jobs=1)
        forest.fit(rest[0], classes)
        found[f"label_{name}"] = FaultStatistic(
            clause=f"do not have the {printable(name)} that the rest of them suggests",
            meaning="A forest predicts another value from the other columns.",
            shown=[forest.predict(own) != each.codes[:, place] for own, each in zip(rest[1:], seen, strict=True)],
            learned=True,
        )
    return found


def _copied(seen: Sequence[Coded]) -> dict[str, FaultStatistic]:
    cells = [
        np.stack([each.numbers.get(name, each.codes[:, at].astype(float)) for at, name in enumerate(each.names)], 1)
        for each in seen
    ]
    return copy_tests(cells, "row")
