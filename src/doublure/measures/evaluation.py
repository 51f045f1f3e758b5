"""Base of the evaluations of all kinds of data: records compared, notes for the reader, mark as internal.

Each kind adds its figures and its verdict.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from doublure.measures.holdout import RowCounts
from doublure.measures.scores import Score
from doublure.results import INTERNAL, Document, Verdict


class Evaluation(Document):
    """All measurements. Computed on real data: internal.

    Attributes:
        internal: The mark as internal.
        seed: Fixes every random choice.
        rows: Number of records compared.
        notes: Facts a reader needs to interpret the figures.
        versions: Versions of the software behind the figures.
        added: Figures of registered metrics; they are among the scores, too.
    """

    kind: ClassVar[str]
    """The kind of data."""

    version: Literal[1] = 1
    internal: str = INTERNAL
    seed: int
    rows: RowCounts
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    added: tuple[Score, ...] = ()

    if TYPE_CHECKING:

        @property
        def scores(self) -> tuple[Score, ...]:
            """The headline figures."""

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """The evaluation in words."""

    @property
    def beaten(self) -> frozenset[str]:
        """The keys of the figures at which the baseline does better."""
        return frozenset()

    def plus(self, added: tuple[Score, ...]) -> Self:
        """Return the evaluation with the figures of registered metrics."""
        return self.model_copy(update={"added": added})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({INTERNAL})"

    __str__ = __repr__


def verdict(evaluation: Evaluation) -> Verdict:
    """Return an evaluation in words."""
    return evaluation.verdict
