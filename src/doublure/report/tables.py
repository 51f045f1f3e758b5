"""Sections of a table's page, which word and lay out the figures of its evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, get_args

from markupsafe import Markup

from doublure.measures.tables.distributions import ColumnFrequencies, NumberDensity
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.measures.tables.fidelity import ColumnFidelity, PairFidelity
from doublure.measures.tables.groups import Subgroup
from doublure.measures.tables.overall import ScorePart
from doublure.measures.tables.summaries import NumberSummary, Statistic, round_figure
from doublure.measures.tables.utility import ClassBalance, TableClassifierScores
from doublure.measures.tables.verdict import count_lost, name_others
from doublure.measures.tables.weighted import RealAndSynthetic, WeightedFigure
from doublure.report.cells import ScoreCell, make_cell, make_cells
from doublure.results import percent, points

MOST_DRAWN = 36
"""Most columns drawn, and most densities drawn: those furthest from the real rows."""

_MOST_GROUPS = 12
_MOST_LISTED = 100
_MOST_IN_A_SMALL_MAP = 24
_MOST_SPECIAL = 40
_MOST_RULES = 20
_MOST_SUMMARISED = 40
_MOST_COEFFICIENTS = 20


def table_context(table: TableEvaluation) -> dict[str, Any]:
    """Return the template variables of a table, besides the common ones."""
    return {
        "overall": _overall(table),
        "special": _special(table),
        "summaries": _summaries(table),
        "weighted": _weighted(table),
        "rules": _rules(table),
        "regression": _regression(table),
        "figures": [(score, make_cell(score)) for score in table.scores],
        "utility": _utility(table),
        "utility_skipped": table.utility_skipped,
        "groups": _groups(table),
        "frequencies": _frequencies(table),
        "densities": _densities(table),
        "columns": [*_columns(_furthest(table)[:_MOST_LISTED], table), *_levels(table)],
        "columns_left_out": max(0, len(table.fidelity.columns) - _MOST_LISTED),
        "pairs": _pairs(table.fidelity.pairs),
        "related": () if table.marginals.relations is None else table.marginals.relations.pairs,
        "related_found": 0 if table.marginals.relations is None else table.marginals.relations.found,
        "missing": () if table.marginals.relations is None else table.marginals.relations.missing,
        "missing_found": 0 if table.marginals.relations is None else table.marginals.relations.missing_found,
        "n_pairs": table.fidelity.n_pairs,
        "association": _association(table),
        "many_columns": len(table.fidelity.association.columns) > _MOST_IN_A_SMALL_MAP,
    }


def _utility(table: TableEvaluation) -> dict[str, Any] | None:
    if table.utility is None:
        return None
    utility = table.utility
    keys = tuple(score.key for score in utility.scores)
    by_key = {key: make_cells([getattr(entry, key) for entry in utility.classifiers]) for key in keys}
    names = {score.key: score.name for score in utility.scores}
    rows: list[TableClassifierScores] = list(utility.classifiers)
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
                make_cells([entry.share for entry in classes]),
                make_cells([entry.recall for entry in classes]),
                strict=True,
            )
        ],
    }


def _overall(table: TableEvaluation) -> dict[str, Any]:
    found = table.overall
    known = [component for component in found.components if component.parts]
    return {
        "cell": make_cell(found.score, (0.0, 100.0)),
        "lost": count_lost(table.marginals.relations),
        "others": name_others(table.rows.kept_aside),
        "components": [
            {
                "name": component.score.name,
                "meaning": component.score.meaning,
                "cell": make_cell(component.score, (0.0, 100.0)),
                "parts": [_part(part) for part in component.parts],
            }
            for component in known
        ],
    }


def _part(part: ScorePart) -> dict[str, str]:
    figures = {role: getattr(part.score, role) for role in ("value", "baseline", "real")}
    return {"name": part.name, "formula": part.formula} | {
        role: "cannot be told" if value is None else f"{100 * value:.1f}" for role, value in figures.items()
    }


def _special(table: TableEvaluation) -> dict[str, Any]:
    entries = sorted(table.special_values.values, key=lambda entry: not entry.off)  # as the verdict names them
    listed = entries[:_MOST_SPECIAL]
    return {
        "rows": [
            {"column": entry.column, "label": entry.label, "cell": make_cell(entry.share, (0.0, 1.0)), "off": entry.off}
            for entry in listed
        ],
        "left_out": len(entries) - len(listed),
        "off": sum(entry.off for entry in entries),
    }


def _summaries(table: TableEvaluation) -> dict[str, Any]:
    by_column: dict[str, list[NumberSummary]] = {}
    for entry in table.summaries:  # significant differences come first
        by_column.setdefault(entry.column, []).append(entry)
    listed = list(by_column.items())[:_MOST_SUMMARISED]
    order = [*get_args(Statistic)]
    return {
        "statistics": order,
        "rows": [
            {
                "column": name,
                "figures": [
                    {
                        "value": round_figure(one.value, one.kind),
                        "real": round_figure(one.real, one.kind),
                        "off": one.off,
                    }
                    for one in sorted(entries, key=lambda entry: order.index(entry.what))
                ],
            }
            for name, entries in listed
        ],
        "off": sum(any(entry.off for entry in entries) for entries in by_column.values()),
        "columns": len(by_column),
    }


def _weighted(table: TableEvaluation) -> dict[str, Any] | None:
    if (found := table.weighted) is None:
        return None
    listed = found.figures[:_MOST_SUMMARISED]
    return {
        "column": found.column,
        "size": _both(found.total, _total),
        "rows": [
            {
                "column": each.column,
                "label": each.label,
                "figures": [
                    _both(each.unweighted, partial(_mean, each)),
                    _both(each.weighted, partial(_mean, each)),
                    _both(each.total, _total),
                ],
            }
            for each in listed
        ],
        "left_out": len(found.figures) - len(listed),
    }


def _both(figure: RealAndSynthetic, shown: Callable[[float], str]) -> dict[str, str]:
    return {"value": shown(figure.value), "real": shown(figure.real)}


def _total(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _mean(figure: WeightedFigure, value: float) -> str:
    return percent(value) if figure.label is not None else round_figure(value, figure.kind)


def _rules(table: TableEvaluation) -> dict[str, Any] | None:
    found = table.rules
    if not found.rules:
        return None
    listed = [rule for rule in found.rules if rule.broken.value][:_MOST_RULES]
    return {
        "score": make_cell(found.score),
        "rows": [
            {"rule": rule, "cell": cell, "expected": percent(rule.expected)}
            for rule, cell in zip(listed, make_cells([rule.broken for rule in listed]), strict=True)
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
        "sizes": [percent(size, digits=0) for size in found.sizes],
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
    clear_first = sorted(groups.groups, key=lambda entry: not entry.clear)  # as the verdict names them
    listed = clear_first[:_MOST_GROUPS]
    cells = make_cells([entry.accuracy for entry in (*listed, groups.everybody)])
    return {
        "rows": [_group(entry, cell) for entry, cell in zip(listed, cells, strict=False)],
        "everybody": _group(groups.everybody, cells[-1]),
        "looked_at": len(groups.groups),
        "columns": groups.columns,
        "too_small": groups.too_small,
    }


def _group(group: Subgroup, cell: ScoreCell | None) -> dict[str, Any]:
    ends = group.loss_interval
    return {
        "column": group.column,
        "value": group.value,
        "rows": group.rows,
        "cell": cell,
        "loss": points(group.loss),
        "loss_interval": "" if ends is None else f"{points(ends[0])} to {points(ends[1])}",
        "excess": "" if group.excess_interval is None else points(group.excess),
        "excess_interval": ""
        if group.excess_interval is None
        else f"{points(group.excess_interval[0])} to {points(group.excess_interval[1])}",
        "stands_out": group.clear,
        "share": None if group.share is None else percent(group.share.value),
        "real_share": None if group.share is None else percent(group.share.real),
    }


def _frequencies(table: TableEvaluation) -> dict[str, Any]:
    from doublure.report import plots

    far = {entry.name: entry.variation.value or 0.0 for entry in table.fidelity.columns}
    place = {entry.name: number for number, entry in enumerate(_furthest(table))}
    entries = sorted(table.frequencies, key=lambda entry: place[entry.column])[:MOST_DRAWN]
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


def _remarks(entry: ColumnFrequencies) -> list[str]:
    pairs = {"zero": entry.zero, "missing": entry.missing}
    return [
        f"{name}: real {percent(shares[0])}, synthetic {percent(shares[1])}" for name, shares in pairs.items() if shares
    ]


def _densities(table: TableEvaluation) -> dict[str, Any]:
    from doublure.report import plots

    entries: Sequence[NumberDensity] = table.densities[:MOST_DRAWN]
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


def _furthest(table: TableEvaluation) -> list[ColumnFidelity]:
    """Return the columns, the furthest from the real rows in any bins first."""
    finer = {entry.column: entry.variation for entry in table.marginals.columns}
    return sorted(
        table.fidelity.columns, key=lambda entry: -max(entry.variation.value or 0.0, finer.get(entry.name, 0.0))
    )


def _columns(columns: Sequence[ColumnFidelity], table: TableEvaluation) -> list[dict[str, Any]]:
    finer = {entry.column: percent(entry.variation) for entry in table.marginals.columns}
    variations = make_cells([entry.variation for entry in columns])
    moved = make_cells([entry.wasserstein for entry in columns])
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


def _levels(table: TableEvaluation) -> list[dict[str, Any]]:
    """Return the levels above codes, as further lines of the columns."""
    found = () if table.code_levels is None else table.code_levels.levels
    levels = [entry for entry in found if entry.level is not None]
    cells = make_cells([entry.variation for entry in levels])
    return [
        {
            "name": f"{entry.name}, level {entry.level}",
            "kind": "code",
            "variation": cell,
            "finer": "",
            "wasserstein": None,
        }
        for entry, cell in zip(levels, cells, strict=True)
    ]


def _pairs(pairs: Sequence[PairFidelity]) -> list[dict[str, Any]]:
    cells = make_cells([entry.variation for entry in pairs])
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
