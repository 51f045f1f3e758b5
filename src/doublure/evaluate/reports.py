"""What an evaluation of a run says: the figures of its kind of data, the expected loss, and what attacks found."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from doublure.attack.results import AttackResult
from doublure.measures.evaluation import Evaluation
from doublure.measures.expected_loss import ExpectedLoss
from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.series import SeriesEvaluation
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.report.contents import Page
from doublure.report.display import evaluation_html
from doublure.report.files import Saved
from doublure.results import InternalReport, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from doublure.report.figures import Figure


class Internal(InternalReport, Saved):
    """A synthesizer's evaluation, whatever the kind of data. Computed on real data: internal.

    Attributes:
        suspicion: Why the real records may be the run's own synthetic ones, if they may.
        expected_loss: The estimated privacy loss, where the guarantee is empirical or it was asked for.
        expected_loss_skipped: Why there is none.
        attacks: A look for copies, and an attack on membership, where records were kept aside.
        attacks_skipped: Why there are none.
    """

    suspicion: str | None = None
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

    def _repr_html_(self) -> str:
        return evaluation_html(self, self.measured.scores, self.measured.internal)

    @property
    def scores(self) -> pd.DataFrame:
        """The headline figures, a row each, indexed by key.

        Columns: ``name``; ``synthetic``, with ``low`` and ``high`` of its 95 % interval where one is cheap;
        ``baseline``, the least to expect; ``real``, the most; ``goal`` (``low``, ``high``, ``near``); ``meaning``. What
        is not known is missing. Computed on real data: internal.
        """
        import pandas as pd

        found = self.measured.scores
        ends = [score.interval or (None, None) for score in found]
        return pd.DataFrame(
            {
                "name": [score.name for score in found],
                "synthetic": pd.array([score.value for score in found], dtype="float64"),
                "low": pd.array([low for low, _ in ends], dtype="float64"),
                "high": pd.array([high for _, high in ends], dtype="float64"),
                "baseline": pd.array([score.baseline for score in found], dtype="float64"),
                "real": pd.array([score.real for score in found], dtype="float64"),
                "goal": [score.goal for score in found],
                "meaning": [score.meaning for score in found],
            },
            index=pd.Index([score.key for score in found], name="key"),
        )

    def plot(self, name: str | None = None) -> Figure:
        """Return a figure of a column, real beside synthetic, that a notebook shows and ``savefig`` writes.

        Args:
            name: A column of a table; of related tables ``table.column``; a channel of series; nothing for images,
                whose sheets are shown. Left out where there is one thing to draw.

        Raises:
            SettingError: There is none of that name.
        """
        from doublure.report.figures import figure_of

        return figure_of(self.measured, name)

    @property
    def verdict(self) -> Verdict:
        """The evaluation in plain words, and first among its warnings that the real records may be none."""
        found = self.measured.verdict
        if self.suspicion is None:
            return found
        return found.model_copy(update={"warnings": (self.suspicion, *found.warnings)})

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
