"""From a result to what its page shows: no figure is computed here, only put into words and places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from doublure.measures.evaluation import Evaluation
from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.relational.relations import PairOff
from doublure.measures.scores import Score
from doublure.measures.series import SeriesEvaluation
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.report import page, tables, tiles
from doublure.report.audit import attacks_context, audit_context
from doublure.report.cells import card_of, cell_of, cells_of
from doublure.report.comparison import comparison_context
from doublure.report.contents import Evaluated, Page, Shown
from doublure.report.inspection import inspection_context

_ON_CARDS = (
    *("accuracy", "auc", "average_precision", "coefficient_signs", "quantile_columns", "quantile_pairs"),
    *("k_marginal", "special_values", "broken_rules", "count_queries"),
)
_NUMBERS = (*range(11), 20, 50, 100, 200, 500)
"""Where a line begins of how many rows units have."""
_NAMES = {"synthetic": "synthetic rows", "train": "real rows", "holdout": "real test rows"}


def page_of(report: Shown) -> str:
    """Return the HTML of the page that a result names."""
    return page.render(f"{report.page}.html.j2", CONTEXTS[report.page](report))


def table_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of a table names."""
    table: TableEvaluation = report.measured
    least = ("independent columns", "independent columns")
    left_out = "accuracy" if table.utility is not None and table.utility.imbalanced else "average_precision"
    on_cards = [score for score in table.scores if score.key in _ON_CARDS and score.key != left_out]
    said = _context_of(report, table, on_cards, "rows", least, tiles.of_table(table.overall))
    return said | tables.sections_of(table)


def image_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of images names."""
    found: ImageEvaluation = report.measured
    cells = cells_of([entry.accuracy for entry in found.classifiers])
    shown = (*(entry.accuracy for entry in found.classifiers[:1]), *found.pixels, *found.texture, *found.added)
    return _context_of(
        report, found, shown, "images", ("class means and noise", "class means"), tiles.of_images(found)
    ) | {
        "students": [(entry.name, cell) for entry, cell in zip(found.classifiers, cells, strict=True)],
        "students_skipped": found.classifiers_skipped,
        "resemblance": [(score, cell_of(score)) for score in found.resemblance],
        "trained": found.trained,
        "classes": [
            (entry.label, cell)
            for entry, cell in zip(found.classes, cells_of([entry.share for entry in found.classes]), strict=True)
        ],
        "synthetic_sheet": page.inline_png(found.artificial_sheet),
        "real_sheet": page.inline_png(found.real_sheet),
        "neighbours_sheet": page.inline_png(found.neighbours_sheet),
    }


def series_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of series names."""
    from doublure.report.series import drawn

    found: SeriesEvaluation = report.measured
    context = _context_of(
        report, found, found.scores, "series", ("independent steps", "independent steps"), tiles.of_series(found)
    )
    return context | drawn(found, tables.MOST_DRAWN)


def relational_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of related tables names."""
    found: RelationalEvaluation = report.measured
    least = ("independent tables", "independent tables")
    return _context_of(report, found, found.scores, "units", least, tiles.of_related(found)) | {
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
                "figures": [(score, cell_of(score)) for score in table.scores],
            }
            for name, table in found.tables.items()
        ],
    }


def _numbers(shares: Sequence[tuple[float, float]]) -> list[tuple[str, float, float]]:
    """Return how many rows units have, the larger numbers taken together, with shares of real and synthetic units."""
    found = []
    for first, last in pairwise([*(number for number in _NUMBERS if number < len(shares)), len(shares)]):
        real, synthetic = (sum(own) for own in zip(*shares[first:last], strict=True))
        found.append((str(first) if last == first + 1 else f"{first} to {last - 1}", real, synthetic))
    return found


def _hanging(pairs: Sequence[PairOff]) -> list[dict[str, Any]]:
    """Return pairs of columns of two rows, with how strongly they hang together and how far that is off."""
    cells = cells_of([entry.variation for entry in pairs])
    return [
        {"names": entry.names, "association": f"{entry.association:.2f}", "variation": cell}
        for entry, cell in zip(pairs, cells, strict=True)
    ]


def _context_of(
    report: Evaluated,
    found: Evaluation,
    shown: Sequence[Score],
    records: str,
    least: tuple[str, str],
    on_top: Sequence[tiles.Tile],
) -> dict[str, Any]:
    """Return what the pages of evaluations have in common.

    Args:
        report: What is shown.
        found: Its figures.
        shown: The figures that get a card.
        records: What its records are called.
        least: What the least to expect is called, and in short.
        on_top: Its three tiles.
    """
    return {
        "title": f"How good are the synthetic {records}?",
        "records": records,
        "least": least[0],
        "least_in_short": least[1],
        "about": report.about,
        "internal": found.internal,
        "verdict": report.verdict,
        "loss": report.loss_lines,
        "attacks_found": attacks_context(report),
        "tiles": on_top,
        "terms": tiles.terms([report.verdict.headline, *report.verdict.lines], [least[0]]),
        "cards": [card_of(score) for score in shown],
        "rows": {name.replace("rows", records): getattr(found.rows, key) for key, name in _NAMES.items()},
        "kept_aside": found.rows.kept_aside,
        "notes": found.notes,
        "seed": found.seed,
        "versions": found.versions,
    }


CONTEXTS: Mapping[Page, Callable[[Any], dict[str, Any]]] = {
    "evaluation": table_context,
    "images": image_context,
    "series": series_context,
    "relational": relational_context,
    "audit": audit_context,
    "comparison": comparison_context,
    "inspection": inspection_context,
}
"""Page -> what its template names, of a result."""
