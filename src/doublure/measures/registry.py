"""Registry of metrics from outside the package: kind of data -> key -> metric (docs/extending.md).

A metric of this package is a function in this folder, called in its kind's evaluation. A registered metric gets the
same inputs, and its score stands beside theirs in the scores, the JSON and on the page.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import numpy as np

from doublure.errors import SettingError
from doublure.measures.evaluation import Evaluation
from doublure.measures.scores import Score
from doublure.schema.kinds import KINDS
from doublure.support.guessing import suggest

Metric: TypeAlias = Callable[[Any, Any, np.random.Generator], Score]
"""A function of a reader, the compared sets and a stream of random numbers that returns a score.

==========  ===================  =====================================================
kind        reader               sets
==========  ===================  =====================================================
table       ``Coder``            ``Tables`` (:mod:`doublure.measures.tables`)
images      the schema           ``value``, ``baseline``, ``real``, ``test`` -> Images
series      the schema           ``value``, ``baseline``, ``real``, ``test`` -> Series
relational  ``Coders``           ``Sides`` (:mod:`doublure.measures.relational`)
==========  ===================  =====================================================
"""

E = TypeVar("E", bound=Evaluation)

_REGISTERED: dict[str, dict[str, Metric]] = {}


def register(key: str, metric: Metric, *, kind: str = "table") -> None:
    """Add a metric to the evaluations of this process.

    Args:
        key: The key of the score that the metric returns; replaces a metric registered under it.
        metric: Takes the reader of records, the compared sets and a stream of random numbers that follows from the
            evaluation's seed and the key; returns a score.
        kind: The kind of data.

    Raises:
        SettingError: There is no such kind. A key of the evaluation itself is refused during the evaluation.
    """
    if kind not in KINDS:
        raise SettingError(f"there is no kind of data {kind!r}", field="kind", remedy=suggest(kind, KINDS))
    _REGISTERED.setdefault(kind, {})[key] = metric


def add_registered(found: E, reader: Any, sets: Any) -> E:
    """Return an evaluation with the scores of its kind's registered metrics, in the order of registration.

    Args:
        found: The evaluation with all measures of this package.
        reader: Reads the records.
        sets: The compared sets.

    Raises:
        SettingError: A metric returns no score of its key, or the evaluation already has that key.
    """
    taken, added = {score.key for score in found.scores}, []
    for key, metric in _REGISTERED.get(found.kind, {}).items():
        if key in taken:
            raise SettingError(
                f"{key!r} is a figure of doublure", field="metric", remedy="register it under another key"
            )
        score = metric(reader, sets, np.random.default_rng([found.seed, zlib.crc32(key.encode())]))
        if not isinstance(score, Score) or score.key != key:
            raise SettingError(
                f"{key!r} returns no score of its key", field="metric", remedy=f"return a Score with key={key!r}"
            )
        added.append(score)
    return found.plus(tuple(added)) if added else found
