"""From a result to what its page shows: no figure is computed here, only put into words and places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from doublure.measures.evaluation import Evaluation
from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.relational.relations import PairOff
from doublure.measures.scores import Score, figure, interval
from doublure.measures.series import SeriesEvaluation
from doublure.measures.tables.distributions import Density, Frequencies
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.measures.tables.fidelity import ColumnFidelity, PairFidelity
from doublure.measures.tables.groups import Group
from doublure.measures.tables.overall import Part
from doublure.measures.tables.utility import ClassBalance, Classifier
from doublure.report import page
from doublure.report.audit import attacks_context, audit_context
from doublure.report.contents import Compared, Evaluated, Page, Shown
from doublure.report.inspection import inspection_context
from doublure.results import percent, points

MOST_DRAWN = 36
"""The most columns that are drawn, and the most whose densities are: the furthest from the real rows."""

_MOST_GROUPS = 12
_MOST_LISTED = 100
_MOST_IN_A_SMALL_MAP = 24
_MOST_SPECIAL = 40
_MOST_RULES = 20
_MOST_COEFFICIENTS = 20
_ON_CARDS = (
    *("accuracy", "auc", "average_precision", "coefficient_signs", "quantile_columns", "quantile_pairs"),
    *("k_marginal", "special_values", "broken_rules", "count_queries"),
)
_TRAINED = frozenset({"accuracy", "auc", "average_precision", "macro_f1"})
_NAMES = {"synthetic": "synthetic rows", "train": "real rows", "holdout": "real test rows"}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One score as a row or card shows it; places are percentages of a scale that its neighbours share."""

    value: str
    interval: str
    baseline: str
    real: str
    dots: Mapping[str, float]
    whisker: tuple[float, float] | None
    better: str


def page_of(report: Shown) -> str:
    """Return the HTML of the page that a result names."""
    return page.render(f"{report.page}.html.j2", CONTEXTS[report.page](report))


def table_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of a table names."""
    table: TableEvaluation = report.measured
    least = ("independent columns", "independent columns")
    left_out = "accuracy" if table.utility is not None and table.utility.imbalanced else "average_precision"
    on_cards = [score for score in table.scores if score.key in _ON_CARDS and score.key != left_out]
    return _context_of(report, table, on_cards, "rows", least) | {
        "overall": _overall(table),
        "special": _special(table),
        "rules": _rules(table),
        "regression": _regression(table),
        "figures": [(score, _cell(score, _scale([score]))) for score in table.scores],
        "utility": _utility(table),
        "utility_skipped": table.utility_skipped,
        "groups": _groups(table),
        "frequencies": _frequencies(table),
        "densities": _densities(table),
        "columns": _columns(table.fidelity.columns[:_MOST_LISTED], table),
        "columns_left_out": max(0, len(table.fidelity.columns) - _MOST_LISTED),
        "pairs": _pairs(table.fidelity.pairs),
        "n_pairs": table.fidelity.n_pairs,
        "association": _association(table),
        "many_columns": len(table.fidelity.association.columns) > _MOST_IN_A_SMALL_MAP,
    }


def image_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of images names."""
    found: ImageEvaluation = report.measured
    cells = _cells([entry.accuracy for entry in found.students])
    shown = (*(entry.accuracy for entry in found.students[:1]), *found.pixels, *found.texture)
    return _context_of(report, found, shown, "images", ("class means and noise", "class means")) | {
        "students": [(entry.name, cell) for entry, cell in zip(found.students, cells, strict=True)],
        "students_skipped": found.students_skipped,
        "resemblance": [(score, _cell(score, _scale([score]))) for score in found.resemblance],
        "taught": found.taught,
        "classes": [
            (entry.label, cell)
            for entry, cell in zip(found.classes, _cells([entry.share for entry in found.classes]), strict=True)
        ],
        "synthetic_sheet": page.inline_png(found.artificial_sheet),
        "real_sheet": page.inline_png(found.real_sheet),
        "neighbours_sheet": page.inline_png(found.neighbours_sheet),
    }


def series_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of series names."""
    from doublure.report.series import drawn

    found: SeriesEvaluation = report.measured
    context = _context_of(report, found, found.scores, "series", ("independent steps", "independent steps"))
    return context | drawn(found, MOST_DRAWN)


def relational_context(report: Evaluated) -> dict[str, Any]:
    """Return what the template of related tables names."""
    found: RelationalEvaluation = report.measured
    least = ("independent tables", "independent tables")
    return _context_of(report, found, found.scores, "units", least) | {
        "relations": [
            {
                "child": relation.child,
                "children": list(enumerate(relation.children)),
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
                "figures": [(score, _cell(score, _scale([score]))) for score in table.scores],
            }
            for name, table in found.tables.items()
        ],
    }


def _hanging(pairs: Sequence[PairOff]) -> list[dict[str, Any]]:
    """Return pairs of columns of two rows, with how strongly they hang together and how far that is off."""
    cells = _cells([entry.variation for entry in pairs])
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
) -> dict[str, Any]:
    """Return what the pages of evaluations have in common.

    Args:
        report: What is shown.
        found: Its figures.
        shown: The figures that get a card.
        records: What its records are called.
        least: What the least to expect is called, and in short.
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
        "cards": [_card(score) for score in shown],
        "rows": {name.replace("rows", records): getattr(found.rows, key) for key, name in _NAMES.items()},
        "kept_aside": found.rows.kept_aside,
        "notes": found.notes,
        "seed": found.seed,
        "versions": found.versions,
    }


def comparison_context(found: Compared) -> dict[str, Any]:
    """Return what the template of a comparison names: a section a figure, in which a line is a synthesizer."""
    sections = []
    for entry in found.side_by_side:
        score, cells = entry.score, _cells(entry.scores)
        sections.append(
            {
                "name": score.name,
                "meaning": score.meaning,
                "better": next(cell.better for cell in cells if cell is not None),
                "one_scale": entry.one_scale,
                "real": figure(score, score.real),
                "baseline": figure(score, score.baseline),
                "rows": list(zip(found.contenders, cells, strict=True)),
            }
        )
    return {
        "title": "Comparison of synthesizers",
        "internal": found.internal,
        "kept_aside": found.kept_aside,
        "warnings": found.warnings,
        "asked_the_same": found.asked_the_same,
        "sections": sections,
        "contenders": found.contenders,
        "records": found.records,
        "least": found.least,
    }


# -- scores ----------------------------------------------------------------------------------------------------------


def _scale(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the ends of a scale that holds all figures of some scores, with a little room."""
    held = [end for score in scores for end in (score.value, score.baseline, score.real, *(score.interval or ()))]
    known = [end for end in held if end is not None]
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    room = max(0.08 * (high - low), 0.004)
    return max(low - room, scores[0].range[0] - 0.004), min(high + room, scores[0].range[1] + 0.004)


def _cell(score: Score, scale: tuple[float, float]) -> Cell:
    def place(value: float) -> float:
        return round(100 * (value - scale[0]) / (scale[1] - scale[0]), 2)

    figures = {"baseline": score.baseline, "real": score.real, "synthetic": score.value}
    return Cell(
        value=figure(score, score.value),
        interval=interval(score, score.interval),
        baseline=figure(score, score.baseline),
        real=figure(score, score.real),
        dots={role: place(value) for role, value in figures.items() if value is not None},
        whisker=None if score.interval is None else (place(score.interval[0]), place(score.interval[1])),
        better={"low": "lower is better", "high": "higher is better", "near": "near the real figure is best"}[
            score.goal
        ],
    )


def _cells(scores: Sequence[Score | None]) -> list[Cell | None]:
    scale = _scale([score for score in scores if score is not None])
    return [None if score is None else _cell(score, scale) for score in scores]


def _card(score: Score) -> dict[str, Any]:
    against = "trained on real rows" if score.key in _TRAINED else "other real rows"
    return {"name": score.name, "meaning": score.meaning, "cell": _cell(score, _scale([score])), "against": against}


# -- sections --------------------------------------------------------------------------------------------------------


def _utility(table: TableEvaluation) -> dict[str, Any] | None:
    if table.utility is None:
        return None
    utility = table.utility
    keys = tuple(score.key for score in utility.scores)
    by_key = {key: _cells([getattr(entry, key) for entry in utility.classifiers]) for key in keys}
    names = {score.key: score.name for score in utility.scores}
    rows: list[Classifier] = list(utility.classifiers)
    classes: list[ClassBalance] = list(utility.classes)
    return {
        "target": utility.target,
        "imbalanced": utility.imbalanced,
        "rows": utility.rows,
        "metrics": [
            {"name": names[key], "rows": [(entry.name, cell) for entry, cell in zip(rows, by_key[key], strict=True)]}
            for key in keys
        ],
        "classes": [
            {"label": entry.label, "share": share, "recall": recall}
            for entry, share, recall in zip(
                classes,
                _cells([entry.share for entry in classes]),
                _cells([entry.recall for entry in classes]),
                strict=True,
            )
        ],
    }


def _overall(table: TableEvaluation) -> dict[str, Any]:
    found = table.overall
    known = [third for third in found.thirds if third.score.value is not None]
    return {
        "cell": _cell(found.score, (0.0, 100.0)),
        "thirds": [
            {
                "name": third.score.name,
                "meaning": third.score.meaning,
                "cell": _cell(third.score, (0.0, 100.0)),
                "parts": [_part(part) for part in third.parts],
            }
            for third in known
        ],
    }


def _part(part: Part) -> dict[str, str]:
    figures = {role: getattr(part.score, role) for role in ("value", "baseline", "real")}
    return {"name": part.name, "formula": part.formula} | {
        role: "–" if value is None else f"{100 * value:.1f}" for role, value in figures.items()
    }


def _special(table: TableEvaluation) -> dict[str, Any]:
    entries = table.special_values.values
    listed = entries[:_MOST_SPECIAL]
    return {
        "rows": [
            {"column": entry.column, "label": entry.label, "cell": _cell(entry.share, (0.0, 1.0)), "off": entry.off}
            for entry in listed
        ],
        "left_out": len(entries) - len(listed),
        "off": sum(entry.off for entry in entries),
    }


def _rules(table: TableEvaluation) -> dict[str, Any] | None:
    found = table.rules
    if not found.rules:
        return None
    listed = [rule for rule in found.rules if rule.broken.value][:_MOST_RULES]
    return {
        "score": _cell(found.score, _scale([found.score])),
        "rows": [
            {"rule": rule, "cell": cell, "expected": percent(rule.expected)}
            for rule, cell in zip(listed, _cells([rule.broken for rule in listed]), strict=True)
        ],
        "found": found.found,
        "broken": found.broken,
    }


def _regression(table: TableEvaluation) -> dict[str, Any] | None:
    found = table.regression
    if found is None:
        return None
    return {
        "outcome": found.outcome,
        "terms": found.terms,
        "rows": [
            {
                "term": entry.term,
                "figures": [
                    f"{value:+.2f}".replace("-", "−") for value in (entry.synthetic, entry.real, entry.holdout)
                ],
                "error": f"± {entry.error:.2f}",
                "wrong": entry.synthetic * entry.real < 0,
            }
            for entry in found.coefficients[:_MOST_COEFFICIENTS]
        ],
        "shown_of": len(found.coefficients),
    }


def _groups(table: TableEvaluation) -> dict[str, Any] | None:
    if table.groups is None:
        return None
    groups = table.groups
    listed = list(groups.groups[:_MOST_GROUPS])
    cells = _cells([entry.accuracy for entry in (*listed, groups.everybody)])
    return {
        "rows": [_group(entry, cell) for entry, cell in zip(listed, cells, strict=False)],
        "everybody": _group(groups.everybody, cells[-1]),
        "looked_at": len(groups.groups),
        "columns": groups.columns,
        "too_small": groups.too_small,
    }


def _group(group: Group, cell: Cell | None) -> dict[str, Any]:
    ends = group.loss_interval
    return {
        "column": group.column,
        "value": group.value,
        "rows": group.rows,
        "cell": cell,
        "loss": points(group.loss),
        "loss_interval": "" if ends is None else f"{points(ends[0])} to {points(ends[1])}",
        "stands_out": group.clear,
        "share": None if group.share is None else percent(group.share.value),
        "real_share": None if group.share is None else percent(group.share.real),
    }


def _frequencies(table: TableEvaluation) -> dict[str, Any]:
    from doublure.report import plots

    far = {entry.name: entry.variation.value or 0.0 for entry in table.fidelity.columns}
    furthest = far | {entry.column: max(far[entry.column], entry.variation) for entry in table.marginals.columns}
    drawn = sorted(table.frequencies, key=lambda entry: -furthest[entry.column])[:MOST_DRAWN]
    kept = {entry.column for entry in drawn}
    entries = [entry for entry in table.frequencies if entry.column in kept]
    finer = {entry.column: entry for entry in table.marginals.columns}
    return {
        "drawings": [
            {
                "name": entry.column,
                "far": percent(far[entry.column]),
                "drawing": plots.frequencies(entry),
                "remarks": _remarks(entry),
                "finer": plots.quantiles(finer[entry.column]) if entry.column in finer else None,
                "finer_far": percent(finer[entry.column].variation) if entry.column in finer else None,
            }
            for entry in entries
        ],
        "left_out": len(table.frequencies) - len(entries),
    }


def _remarks(entry: Frequencies) -> list[str]:
    pairs = {"zero": entry.zero, "missing": entry.missing}
    return [
        f"{name}: real {percent(shares[0])}, synthetic {percent(shares[1])}" for name, shares in pairs.items() if shares
    ]


def _densities(table: TableEvaluation) -> dict[str, Any]:
    from doublure.report import plots

    entries: Sequence[Density] = table.densities[:MOST_DRAWN]
    return {
        "drawings": [
            {
                "name": entry.column,
                "drawing": plots.density(entry),
                "remarks": ["logarithmic scale"] if entry.scale == "log" else [],
            }
            for entry in entries
        ],
        "left_out": len(table.densities) - len(entries),
    }


def _columns(columns: Sequence[ColumnFidelity], table: TableEvaluation) -> list[dict[str, Any]]:
    finer = {entry.column: percent(entry.variation) for entry in table.marginals.columns}
    variations = _cells([entry.variation for entry in columns])
    moved = _cells([entry.wasserstein for entry in columns])
    return [
        {
            "name": entry.name,
            "kind": entry.kind,
            "variation": variation,
            "finer": finer.get(entry.name, ""),
            "wasserstein": distance,
        }
        for entry, variation, distance in zip(columns, variations, moved, strict=True)
    ]


def _pairs(pairs: Sequence[PairFidelity]) -> list[dict[str, Any]]:
    cells = _cells([entry.variation for entry in pairs])
    return [{"names": entry.names, "variation": cell} for entry, cell in zip(pairs, cells, strict=True)]


def _association(table: TableEvaluation) -> list[dict[str, Markup | str]] | None:
    from doublure.report import plots

    found = table.fidelity.association
    if len(found.columns) < 2:
        return None
    gap = [
        [artificial - real for artificial, real in zip(*rows, strict=True)]
        for rows in zip(found.synthetic, found.real, strict=True)
    ]
    return [
        {"name": "Real", "drawing": plots.heat_map(found.columns, found.real, "Association among real rows")},
        {
            "name": "Synthetic",
            "drawing": plots.heat_map(found.columns, found.synthetic, "Association among synthetic rows"),
        },
        {
            "name": "Synthetic less real",
            "drawing": plots.heat_map(found.columns, gap, "Difference of the associations", signed=True),
        },
    ]


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
