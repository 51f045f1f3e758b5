"""What the evaluations of all kinds of data share: what was compared, what to know to read it, and that it is internal.

Each kind adds its figures and puts them into words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from doublure.measures.holdout import Rows
from doublure.measures.scores import Score
from doublure.results import INTERNAL, Document, Verdict


class Evaluation(Document):
    """Everything that was measured. Computed on real data: internal.

    Attributes:
        internal: That it is.
        seed: What fixed every random choice.
        rows: How many records were compared.
        notes: What a reader has to know to read the figures right.
        versions: What the figures were made with.
        added: The figures of metrics that are registered from elsewhere; they stand among the scores, too.
    """

    kind: ClassVar[str]
    """The kind of data."""

    version: Literal[1] = 1
    internal: str = INTERNAL
    seed: int
    rows: Rows
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
        """The evaluation in plain words."""

    def plus(self, added: tuple[Score, ...]) -> Self:
        """Return the evaluation with the figures of metrics that are registered from elsewhere."""
        return self.model_copy(update={"added": added})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({INTERNAL})"

    __str__ = __repr__


def verdict(evaluation: Evaluation) -> Verdict:
    """Return an evaluation in plain words."""
    return evaluation.verdict
