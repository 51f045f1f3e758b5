"""Features and target classes of downstream classifiers, by public rules from the schema, the same for every table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from doublure.measures.classification import Labels
from doublure.measures.tables.coding import Coded, Coder, Integers
from doublure.schema import ResolvedSchema

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOST_CLASSES = 10
"""Most classes of a target; beyond, the rarest are merged."""

REST = "(any other)"


@dataclass(frozen=True, kw_only=True)
class FeatureTable:
    """The input columns of a classifier.

    Attributes:
        names: The P columns.
        sizes: Number of codes of each, the last of them for missing.
        codes: ``(N, P)`` int32.
        scaled: For number columns ``(N,)`` float32 in [0, 1], relative to the public bounds; NaN where missing.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: Integers
    scaled: Mapping[str, np.ndarray[Any, np.dtype[np.float32]]]

    def trees(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return ``(N, P)`` float32 for trees: numbers unchanged, values by their code, missing below all."""
        table = self.codes.astype(np.float32)
        for place, (name, size) in enumerate(zip(self.names, self.sizes, strict=True)):
            if name in self.scaled:
                table[:, place] = np.nan_to_num(self.scaled[name], nan=-0.1)
            else:
                table[self.codes[:, place] == size - 1, place] = -1.0
        return table

    def one_hot(self) -> csr_matrix:
        """Return a sparse ``(N, Q)`` matrix for linear models: each code one-hot, each scaled number beside it."""
        from scipy.sparse import csr_matrix

        n, width = len(self.codes), sum(self.sizes)
        starts = np.cumsum([0, *self.sizes[:-1]])
        places = np.concatenate(
            [self.codes + starts, np.broadcast_to(width + np.arange(len(self.scaled)), (n, len(self.scaled)))], axis=1
        )
        values = np.ones(places.shape, dtype=np.float32)
        for number, column in enumerate(self.scaled.values()):
            values[:, len(self.names) + number] = np.nan_to_num(column, nan=0.0)
        pointers = np.arange(n + 1) * places.shape[1]
        return csr_matrix((values.ravel(), places.ravel(), pointers), shape=(n, width + len(self.scaled)))


def features(schema: ResolvedSchema, frame: pd.DataFrame) -> FeatureTable:
    """Return a classifier's features: all columns but ids, the target, and those a rule ties to the target.

    Args:
        schema: Every fact known.
        frame: Rows of this schema, canonical or in the schema's own dtypes.

    Raises:
        DataError: A column is missing, or a cell does not fit it.
    """
    coder = Coder(schema=schema)
    return make_features(coder, coder.read(frame, "the table"))


def make_features(coder: Coder, table: Coded) -> FeatureTable:
    """Return the features of a coded table."""
    banned = _target_and_its_equals(coder.schema)
    places = [place for place, name in enumerate(coder.names) if name not in banned]
    names = tuple(coder.names[place] for place in places)
    scaled = {}
    for name in names:
        if name in table.numbers:
            scaled[name] = coder.place(name, table.numbers[name]).astype(np.float32)
    sizes = tuple(coder.sizes[place] for place in places)
    return FeatureTable(names=names, sizes=sizes, codes=table.codes[:, places], scaled=scaled)


def _target_and_its_equals(schema: ResolvedSchema) -> set[str]:
    banned = {schema.target} if schema.target else set()
    for rule in schema.constraints:
        if rule.derives and schema.target in rule.names:
            banned |= set(rule.names)
    return {name for name in banned if name is not None}


# -- target classes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TargetClasses:
    """The classes of the predicted column.

    Attributes:
        name: The schema's target.
        labels: The K classes.
        column: The column read: the target, or the one it repeats.
        threshold: The boundary between a number's two classes; unused for a discrete target.
        places: The class of each code of a discrete target, -1 for missing; null for a number.
    """

    name: str
    labels: tuple[str, ...]
    column: str
    threshold: float = 0.0
    places: Labels | None = None

    def read(self, table: Coded) -> Labels:
        """Return ``(N,)`` classes, -1 where the target is missing."""
        if self.places is not None:
            return self.places[table.codes[:, table.names.index(self.column)]]
        numbers = table.numbers[self.column]
        return np.where(np.isnan(numbers), -1, np.greater(numbers, self.threshold).astype(np.int64))

    def known(self, table: Coded, rng: np.random.Generator, most: int) -> tuple[Coded, Labels]:
        """Return the rows whose target is known, and their classes; of more than ``most``, a uniform sample."""
        classes = self.read(table)
        rows = np.flatnonzero(classes >= 0)
        if len(rows) > most:
            rows = np.sort(rng.choice(rows, most, replace=False))
        return table.take(rows), classes[rows]


def find_target(coder: Coder, train: Coded) -> TargetClasses | None:
    """Return the target's classes; null where the schema names no target.

    Classes beyond ``MOST_CLASSES`` are merged, the rarest among the real rows first.
    """
    name = coder.schema.target
    if name is None:
        return None
    column = coder.schema.repeated.get(name, name)
    if column in train.numbers:
        numbers = train.numbers[column]
        present = numbers[~np.isnan(numbers)]
        middle = float(np.median(present)) if len(present) else 0.0
        # If more than half of the rows have the largest value, nothing lies above the median.
        middle = middle if (present > middle).any() else float(np.nextafter(middle, -np.inf))
        halves = ("at most the median", "above the median")
        return TargetClasses(name=name, column=column, labels=halves, threshold=middle)
    labels = coder.labels(column)[:-1]
    places = np.append(np.arange(len(labels)), -1).astype(np.int64)
    if len(labels) > MOST_CLASSES:
        counts = np.bincount(train.codes[:, train.names.index(column)], minlength=len(labels) + 1)[:-1]
        frequent = np.sort(np.argsort(-counts, kind="stable")[: MOST_CLASSES - 1])
        places = np.append(np.full(len(labels), MOST_CLASSES - 1), -1).astype(np.int64)
        places[frequent] = np.arange(MOST_CLASSES - 1)
        labels = (*(labels[place] for place in frequent), REST)
    return TargetClasses(name=name, column=column, labels=labels, places=places)
