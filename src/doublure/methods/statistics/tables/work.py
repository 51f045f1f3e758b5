"""Cost of a fit of ``statistics`` on a table, from public facts.

Little of it is matrix multiplication: noise is drawn cell by cell, rows are counted table by table, and columns are
drawn one after the other. The time of each was measured on one core, and is given in floating-point operations of the
matrix product that a plan measures the machine by, so that it scales with the machine (``benchmarks/wide.py`` compares
forecast and fit).
"""

from __future__ import annotations

import math

from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.plan import PlannedReleases, counted_columns
from doublure.schema import Schema
from doublure.schema.columns import Column
from doublure.schema.schema import domain_of
from doublure.training.settings import Work

DRAWN, FEWEST_DRAWN, CELLS_DRAWN = 20_000, 8_000, 4_000_000
"""Rows that a fit draws to correct shares and to fit the target: the usual number, the fewest, and the most cells."""

_BYTES = 8
_LEAST_GROUPS = 8
_FINE_FILLED = 5 / 6
_PUBLIC_CELLS, _LATTICES, _SINGLE_VALUES, _PATTERNS = 250, 12, 500, 256
_BEGIN, _DECLARED_VALUE, _READ_A_CELL = 1.5e10, 1.8e7, 1.3e4
_NOISE_A_CELL = 4.2e5
_COUNT_A_ROW, _PLACE_A_ROW = 600.0, 1.5e3
_DRAW_A_ROW, _EVEN_A_CELL, _BESIDE, _MOST_EVEN = 4.7e4, 1.3e3, 64, 3_000_000
_EDGE = 2.5e8
_TRAINED, _TAUGHT_A_CELL = 150, 220.0
_PRODUCT, _NUMBER, _CELL, _STEP = 12.0, 700.0, 40.0, 1.0e7
_FEWEST_STEPS, _STEPS_A_SIGNAL = 35.0, 30.0
_MOST_COUNTED, _FILLED_UP = 1 / 3, 8


def rows_drawn(nodes: int) -> int:
    """Return how many rows a fit draws for its own estimates; fewer for a wide table, whose tables are noisier."""
    return min(DRAWN, max(FEWEST_DRAWN, CELLS_DRAWN // max(1, nodes)))


def estimate_work(schema: Schema, settings: TableStatisticsSettings, planned: PlannedReleases) -> Work:
    """Return the cost of counting and fitting.

    Args:
        schema: The public facts.
        settings: As the plan has decided them.
        planned: The releases.
    """
    columns = [schema.columns[name] for name in counted_columns(schema) if name != settings.within]
    rows, nodes = schema.public_units * schema.unit.max_records, len(columns) + (plan.PATTERNS in planned.tables)
    values = max(2, len(domain_of(schema, settings.within or "")))
    classes, beside = values if planned.pairs_within else 1, plan.BY_TARGET in planned.tables
    groups = [_joined(column, _groups(settings, planned, classes)) for column in columns]
    most_fine = plan.fine_groups(_over_noise(settings, planned, plan.TREE))
    fine = [
        max(own, _joined(column, int(_FINE_FILLED * most_fine))) for own, column in zip(groups, columns, strict=True)
    ]
    width, mean, mean_fine = sum(groups), sum(groups) / max(1, len(groups)), sum(fine) / max(1, len(fine))
    sides = {
        plan.NEIGHBOURS: 4, plan.PATTERNS: _PATTERNS, plan.CELLS: _PUBLIC_CELLS, plan.ROUND: _LATTICES,
        plan.VALUES: _SINGLE_VALUES,
        plan.REPEATED: _SINGLE_VALUES, plan.TARGET: values,
        plan.CODES: _listed(schema, settings) / plan.CODE_LEVELS,
        plan.COLUMNS: _counted_often(groups), plan.BY_TARGET: mean * values, plan.SCORES: 1.0, plan.IDENTITIES: 3,
        plan.PAIRS: _counted_often(groups) ** 2 * classes, plan.TREE: _counted_often(fine) ** 2,
    }  # fmt: skip
    cells = sum(tables * sides[purpose] for purpose, tables in planned.tables.items())
    different = sum(tables // plan.COPIES.get(purpose, 1) for purpose, tables in planned.tables.items())
    pairs = planned.tables.get(plan.PAIRS, 0) // plan.COPIES[plan.PAIRS]
    formed = (pairs + nodes) * (mean + _FILLED_UP) ** 2 + beside * nodes * (mean + _FILLED_UP) * _FILLED_UP
    if 2 * pairs * mean**2 > _MOST_COUNTED * width**2:
        formed = width**2 / 2
    step = settings.components * (_PRODUCT * formed + _NUMBER * width) + settings.starts * (_STEP + _CELL * formed)
    drawn, components = rows_drawn(nodes), settings.components
    flops = (
        _BEGIN
        + _DECLARED_VALUE * sum(len(column.domain) for column in schema.columns.values())
        + _READ_A_CELL * rows * len(schema.columns)
        + _NOISE_A_CELL * cells
        + _COUNT_A_ROW * different * rows
        + _PLACE_A_ROW * nodes * rows * len(planned.tables)
        + classes * _steps(settings, planned, mean) * step
        + _EDGE * nodes
        + _DRAW_A_ROW * nodes * drawn / (1 if beside else 2)
        + beside * nodes * _EVEN_A_CELL * min(_MOST_EVEN, drawn * min(_BESIDE, nodes / 2))
        + beside * _TRAINED * _TAUGHT_A_CELL * drawn * nodes * values
    )
    records = 4 * rows * len(schema.columns)
    fitted = nodes * (3 * components * mean + 2 * mean_fine**2) + 12 * formed + 2 * pairs * mean * components
    memory = records + 4 * cells + fitted + 5 * drawn * nodes
    return Work(
        flops=flops,
        steps=len(planned.tables),
        memory_bytes=int(_BYTES * memory),
        records_bytes=int(_BYTES * records),
    )


def _listed(schema: Schema, settings: TableStatisticsSettings) -> float:
    """Return the mean number of codes of long lists; of groups there are fewer."""
    names = [name for name in counted_columns(schema) if name != settings.within and plan.has_groups(schema, name)]
    return sum(len(schema.columns[name].domain) for name in names) / max(1, len(names))


def _counted_often(sizes: list[int]) -> float:
    """Return a table's mean side over the counts of a release; large tables are counted more often than small ones."""
    return sum(math.pow(size, 5 / 3) for size in sizes) / max(1.0, sum(math.pow(size, 2 / 3) for size in sizes))


def _groups(settings: TableStatisticsSettings, planned: PlannedReleases, classes: int) -> int:
    """Return the most groups of a column, as far as the noise is known."""
    most = settings.groups or plan.groups_for(_over_noise(settings, planned, plan.PAIRS) / classes)
    if settings.seen is None:
        return most
    return int(min(most, max(_LEAST_GROUPS, _over_noise(settings, planned, plan.COLUMNS) / plan.SEEN)))


def _over_noise(settings: TableStatisticsSettings, planned: PlannedReleases, purpose: str) -> float:
    """Return units over the noise of a cell in a release; 0 if it is unknown or there is no such release."""
    tables = planned.tables.get(purpose, 0) / plan.COPIES[purpose]
    return settings.seen * math.sqrt(planned.shares[purpose] / tables) if settings.seen and tables else 0.0


def _steps(settings: TableStatisticsSettings, planned: PlannedReleases, mean: float) -> float:
    """Return the steps of a fit, which grow with the signal-to-noise ratio of the tables."""
    if settings.seen is None or plan.PAIRS not in planned.tables:
        return settings.fit_steps / 3
    signal = _over_noise(settings, planned, plan.PAIRS) / mean**2
    return min(settings.fit_steps, _FEWEST_STEPS + _STEPS_A_SIGNAL * signal)


def _joined(column: Column, groups: int) -> int:
    """Return the approximate number of groups of a column in pairs."""
    most = 4 * groups if column.listed and not column.ordered else groups + 2
    values = len(column.domain)
    return min(most, values + 1) if values else most
