"""Report of an evaluation, and its page for each kind of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer, model_validator
from typing_extensions import override

from doublure.attack.results import AttackResult
from doublure.errors import counted
from doublure.measures.evaluation import Evaluation
from doublure.measures.expected_loss import ExpectedLoss
from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.relational.relations import PairDependence
from doublure.measures.scores import Score, figure, interval
from doublure.measures.series import SeriesEvaluation
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.measures.tables.verdict import count_lost
from doublure.report import page, tables, tiles
from doublure.report.audit import attacks_context
from doublure.report.cells import make_card, make_cell, make_cells
from doublure.report.files import PageResult
from doublure.results import InternalReport, MeanInterval, Verdict
from doublure.schema.kinds import ByKind
from doublure.support import views

if TYPE_CHECKING:
    import pandas as pd

    from doublure.report.figures import Figure

_ON_CARDS = (
    *("accuracy", "auc", "average_precision", "coefficient_signs", "quantile_columns", "quantile_pairs"),
    *("k_marginal", "special_values", "broken_rules", "count_queries"),
)
_NUMBERS = (*range(11), 20, 50, 100, 200, 500)
"""Smallest number of rows per unit at which a table line begins."""
_GOALS = {"low": "low is good", "high": "high is good", "near": "near the real figure is good"}
_NAMES = {"synthetic": "synthetic rows", "train": "real rows", "holdout": "real test rows"}


@dataclass(frozen=True)
class PageContent:
    """Content of an evaluation's page, of one kind of data.

    Attributes:
        cards: The figures that get a card.
        records: The word for its records.
        least: The name of the baseline.
        tiles: The three tiles on top.
        more: Further variables of its template; they override common ones.
    """

    cards: Sequence[Score]
    records: str
    least: str
    tiles: Sequence[tiles.ScoreTile]
    more: Mapping[str, Any]


@dataclass(frozen=True)
class EvaluationPage:
    """The page of one kind of data.

    Attributes:
        figures: The evaluation's model.
        template: The template's name.
        content: Evaluation -> content.
    """

    figures: type[Evaluation]
    template: str
    content: Callable[[Any], PageContent]


class ExampleRows(BaseModel):
    """Some real rows beside as many synthetic ones, as files have them. Private: it holds records.

    Attributes:
        columns: Their columns.
        real: Real rows, chosen at random.
        synthetic: The first synthetic ones.
    """

    columns: tuple[str, ...]
    real: tuple[tuple[str, ...], ...]
    synthetic: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        return f"ExampleRows({counted(len(self.real), 'real row')} and {len(self.synthetic):,} synthetic)"

    __str__ = __repr__


class Report(InternalReport, PageResult):
    """A synthesizer's evaluation, of any kind of data. Computed on real data: internal.

    In its JSON and its constructor, the figures stand under their kind's name: ``Report(table=…).table``.

    Attributes:
        suspicion: The reason to suspect that the real records are the run's own synthetic ones, if there is one.
        expected_loss: The estimated privacy loss, where the guarantee is empirical or on request.
        expected_loss_skipped: The reason where there is none.
        attacks: A search for copies, and an attack on membership, where records were kept aside.
        attacks_skipped: The reason where there are none.
        means: Intervals of the means of numbers, by the noisy tables; in the JSON where there are some.
        examples: Real rows beside synthetic ones, on request; on the page alone, never in the JSON.
        measured: The evaluation of the kind of data.

    Example:
        >>> overall = report.table.overall.score
        >>> 0 <= overall.value <= overall.real == 100
        True
    """

    suspicion: str | None = None
    expected_loss: ExpectedLoss | None = None
    expected_loss_skipped: str | None = None
    attacks: tuple[AttackResult, ...] = ()
    attacks_skipped: str | None = None
    means: tuple[MeanInterval, ...] = ()
    examples: ExampleRows | None = Field(default=None, exclude=True)
    measured: SerializeAsAny[Evaluation]

    @model_validator(mode="before")
    @classmethod
    def _of_kind(cls, given: Any) -> Any:
        """Move the figures from under their kind's name."""
        kind = next((kind for kind in PAGES if isinstance(given, dict) and kind in given), None)
        if kind is None:
            return given
        measured = PAGES[kind].figures.model_validate(given[kind])
        return {key: value for key, value in given.items() if key != kind} | {"measured": measured}

    @model_serializer(mode="wrap")
    def _under_kind(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found = {self.measured.kind if key == "measured" else key: value for key, value in written(self).items()}
        return found if self.means else {key: value for key, value in found.items() if key != "means"}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the figures by their kind's name."""
            measured = self.__dict__.get("measured")
            return measured if measured is not None and name == measured.kind else super().__getattr__(name)

    @override
    def to_html(self) -> str:
        kind = PAGES[self.measured.kind]
        return page.render(kind.template, _page_context(self, kind.content(self.measured)))

    def _repr_html_(self) -> str:
        rows = [
            (
                score.name,
                figure(score, score.value),
                interval(score, score.interval) or "–",
                figure(score, score.baseline),
                figure(score, score.real),
                _GOALS[score.goal],
            )
            for score in self.measured.scores
        ]
        said = self.verdict
        warned = len(said.warnings)
        more = f"{warned} {'warning' if warned == 1 else 'warnings'} stand on the page. " if warned else ""
        heads = ("figure", "synthetic", "95 % interval", "baseline", "real", "")
        return views.view(
            "Evaluation" if self.about is None else f"Evaluation of {self.about.method}",
            views.line(f"INTERNAL: {self.measured.internal}", "warn"),
            views.line(said.headline, "plain"),
            views.grid(heads, rows, right=(1, 2, 3, 4)),
            views.line(f"{more}report.show() opens the page; report.scores is a DataFrame; report.plot(column) draws."),
        )

    @property
    def scores(self) -> pd.DataFrame:
        """The headline figures, a row each, indexed by key; rows of one key (a row a classifier) differ by name.

        Columns: ``name``; ``synthetic``, with ``low`` and ``high`` of its 95 % interval where one is cheap;
        ``baseline``, the least to expect; ``real``, the most; ``goal`` (``low``, ``high``, ``near``); ``meaning``.
        Unknown values are missing. Computed on real data: internal.
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
            name: A column of a table; ``table.column`` of related tables; a channel of series; none for images, whose
                sheets are shown. Optional where there is one thing to draw.

        Raises:
            SettingError: There is none of that name.
        """
        from doublure.report.figures import draw_figure

        return draw_figure(self.measured, name)

    @property
    @override
    def verdict(self) -> Verdict:
        found = self.measured.verdict
        if self.suspicion is None:
            return found
        return found.model_copy(update={"warnings": (self.suspicion, *found.warnings)})

    @property
    @override
    def further_lines(self) -> tuple[str, ...]:
        return (*self.loss_lines, *(found.sentence for found in self.attacks))

    @property
    def loss_lines(self) -> tuple[str, ...]:
        """Sentences on the expected loss; empty where it was not requested."""
        if self.expected_loss is not None:
            return self.expected_loss.lines
        return () if self.expected_loss_skipped is None else (f"No privacy loss: {self.expected_loss_skipped}.",)


def _table(table: TableEvaluation) -> PageContent:
    left_out = "accuracy" if table.utility is not None and table.utility.imbalanced else "average_precision"
    on_cards = [score for score in table.scores if score.key in _ON_CARDS and score.key != left_out]
    on_top, more = tiles.table_tiles(table.overall, count_lost(table.marginals.relations)), tables.table_context(table)
    return PageContent(on_cards, "rows", "independent columns", on_top, more)


def _images(found: ImageEvaluation) -> PageContent:
    cells = make_cells([entry.accuracy for entry in found.classifiers])
    shown = (
        *(entry.accuracy for entry in found.classifiers[:1]),
        *found.pixels,
        *found.texture,
        *found.attributes,
        *found.marginals,
        *found.added,
    )
    more = {
        "least_in_short": "class means",
        "students": [(entry.name, cell) for entry, cell in zip(found.classifiers, cells, strict=True)],
        "students_skipped": found.classifiers_skipped,
        "resemblance": [(score, make_cell(score)) for score in found.resemblance],
        "trained": found.trained,
        "classes": [
            (entry.label, cell)
            for entry, cell in zip(found.classes, make_cells([entry.share for entry in found.classes]), strict=True)
        ],
        "synthetic_sheet": page.inline_png(found.artificial_sheet),
        "real_sheet": page.inline_png(found.real_sheet),
        "neighbours_sheet": page.inline_png(found.neighbours_sheet),
    }
    return PageContent(shown, "images", "class means and noise", tiles.image_tiles(found), more)


def _series(found: SeriesEvaluation) -> PageContent:
    from doublure.report.series import series_context, with_worst

    cards = [with_worst(score, found) for score in found.scores]
    return PageContent(cards, "series", "independent steps", tiles.series_tiles(found), series_context(found))


def _related(found: RelationalEvaluation) -> PageContent:
    more = {
        "relations": [
            {
                "child": relation.child,
                "children": _numbers(relation.children),
                "sections": [
                    {"title": title, "pairs": _hanging(pairs)}
                    for title, pairs in (
                        ("A column of the root and one of its rows", relation.parent_child),
                        ("A column in one row and in the next", relation.transitions),
                    )
                    if pairs
                ],
            }
            for relation in found.relations
        ],
        "tables": [
            {
                "name": name,
                "figures": [(score, make_cell(score)) for score in table.scores],
            }
            for name, table in found.tables.items()
        ],
    }
    return PageContent(found.scores, "units", "independent tables", tiles.related_tiles(found), more)


def _numbers(shares: Sequence[tuple[float, float]]) -> list[tuple[str, float, float]]:
    """Return the numbers of rows per unit, larger ones merged, with shares of real and synthetic units."""
    found = []
    for first, last in pairwise([*(number for number in _NUMBERS if number < len(shares)), len(shares)]):
        real, synthetic = (sum(own) for own in zip(*shares[first:last], strict=True))
        found.append((str(first) if last == first + 1 else f"{first} to {last - 1}", real, synthetic))
    return found


def _hanging(pairs: Sequence[PairDependence]) -> list[dict[str, Any]]:
    """Return pairs of columns of two rows, with their dependence and its error."""
    cells = make_cells([entry.variation for entry in pairs])
    return [
        {"names": entry.names, "association": f"{entry.association:.2f}", "variation": cell}
        for entry, cell in zip(pairs, cells, strict=True)
    ]


def _page_context(report: Report, content: PageContent) -> dict[str, Any]:
    found, verdict, records = report.measured, report.verdict, content.records
    return {
        "title": f"How good are the synthetic {records}?",
        "records": records,
        "least": content.least,
        "least_in_short": content.least,
        "about": report.about,
        "internal": found.internal,
        "verdict": verdict,
        "loss": report.loss_lines,
        "attacks_found": attacks_context(report.attacks, report.attacks_skipped),
        "tiles": content.tiles,
        "terms": tiles.find_terms([verdict.headline, *verdict.lines], [content.least]),
        "cards": [make_card(score, score.key in found.beaten) for score in content.cards],
        "rows": {name.replace("rows", records): getattr(found.rows, key) for key, name in _NAMES.items()},
        "kept_aside": found.rows.kept_aside,
        "notes": found.notes,
        "seed": found.seed,
        "versions": found.versions,
        "means": report.means,
        "examples": report.examples,
        **content.more,
    }


PAGES: ByKind[EvaluationPage] = ByKind(
    "page",
    table=EvaluationPage(TableEvaluation, "tables.html.j2", _table),
    images=EvaluationPage(ImageEvaluation, "images.html.j2", _images),
    series=EvaluationPage(SeriesEvaluation, "series.html.j2", _series),
    relational=EvaluationPage(RelationalEvaluation, "relational.html.j2", _related),
)
