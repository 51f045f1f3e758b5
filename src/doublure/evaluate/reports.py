"""What an evaluation of a run says: the figures of its kind of data, the expected loss, and what attacks found."""

from __future__ import annotations

from typing import ClassVar

from doublure.attack.results import AttackResult
from doublure.measures.evaluation import Evaluation
from doublure.measures.expected_loss import ExpectedLoss
from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.scores import Score
from doublure.measures.series import SeriesEvaluation
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.report.contents import Page
from doublure.report.files import Saved
from doublure.results import InternalReport, Verdict


class Internal(InternalReport, Saved):
    """A synthesizer's evaluation, whatever the kind of data. Computed on real data: internal.

    Attributes:
        expected_loss: The estimated privacy loss, where the guarantee is empirical or it was asked for.
        expected_loss_skipped: Why there is none.
        attacks: A look for copies, and an attack on membership, where records were kept aside.
        attacks_skipped: Why there are none.
    """

    expected_loss: ExpectedLoss | None = None
    expected_loss_skipped: str | None = None
    attacks: tuple[AttackResult, ...] = ()
    attacks_skipped: str | None = None

    page: ClassVar[Page]
    field: ClassVar[str]
    """Where the figures stand: the kind of data."""

    @property
    def measured(self) -> Evaluation:
        """Everything that was measured."""
        found: Evaluation = getattr(self, self.field)
        return found

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures."""
        return self.measured.scores

    @property
    def verdict(self) -> Verdict:
        """The evaluation in plain words."""
        return self.measured.verdict

    @property
    def further_lines(self) -> tuple[str, ...]:
        """The expected loss, and what attacks found."""
        return (*self.loss_lines, *(found.sentence for found in self.attacks))

    @property
    def loss_lines(self) -> tuple[str, ...]:
        """What is said about the expected loss; nothing where nobody asked."""
        if self.expected_loss is not None:
            return self.expected_loss.lines
        return () if self.expected_loss_skipped is None else (f"No privacy loss: {self.expected_loss_skipped}.",)


class Report(Internal):
    """A table's evaluation. Computed on real data: internal.

    Attributes:
        table: Everything that was measured.
    """

    page: ClassVar[Page] = "evaluation"
    field: ClassVar[str] = "table"

    table: TableEvaluation


class ImageReport(Internal):
    """The evaluation of a set of images. Computed on real data: internal.

    Attributes:
        images: Everything that was measured.
    """

    page: ClassVar[Page] = "images"
    field: ClassVar[str] = "images"

    images: ImageEvaluation


class RelationalReport(Internal):
    """The evaluation of related tables. Computed on real data: internal.

    Attributes:
        relational: Everything that was measured.
    """

    page: ClassVar[Page] = "relational"
    field: ClassVar[str] = "relational"

    relational: RelationalEvaluation


class SeriesReport(Internal):
    """The evaluation of a set of time series. Computed on real data: internal.

    Attributes:
        series: Everything that was measured.
    """

    page: ClassVar[Page] = "series"
    field: ClassVar[str] = "series"

    series: SeriesEvaluation
