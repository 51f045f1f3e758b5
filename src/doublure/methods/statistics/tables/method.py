"""``statistics`` on tables: one noisy release of the data's one- and two-way tables trains a generator.

Two releases, each with exact discrete Gaussian noise: every column's values in fine public bins, then every pair of
columns in groups that follow from the first. Where a target (or a condition) has few values, all of it is counted
within each of them, which costs nothing more: a record still falls in one cell of each table. A mixture of products is
then fitted to the noisy tables (:mod:`doublure.methods.statistics.tables.mixture_fit`). No record is looked at twice,
there are no noisy gradients, and the fit can be repeated for nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from doublure.access import Access
from doublure.encode.columns import estimated_width
from doublure.errors import SettingError
from doublure.methods.statistics.of_kind import StatisticsOfKind, counted_events, counting
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.schema import Schema
from doublure.schema.columns import Column, IdColumn, OrdinalColumn
from doublure.training.job import Job
from doublure.training.settings import Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

S = TypeVar("S", bound=TableStatisticsSettings)

_FEW_VALUES = 4
_BYTES = 4


class TableStatistics(StatisticsOfKind[S]):
    """``statistics`` on tables; see the module."""

    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        """Decide within which column to count, from declared facts."""
        counted = _counted(schema)
        within = _few_valued(schema) if settings.within is None else settings.within
        if within and (within not in counted or not _values(schema, within)):
            raise SettingError(
                "is not a column with declared values", field="within", remedy='name one, or none: within=""'
            )
        return settings.model_copy(update={"within": within if len(counted) > 1 else ""})

    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        """One access a release; their noise together is that of one Gaussian of this multiplier."""
        singles, pairs = _tables(schema, settings)
        releases = (
            ("count each column's values", singles, settings.single_share if pairs else 1.0),
            ("count each pair of columns", pairs, 1.0 - settings.single_share),
        )
        return counting(releases, records=schema.unit.max_records, noise_multiplier=noise_multiplier)

    def work(self, schema: Schema, settings: S) -> Work:
        """Return what counting and fitting compute and hold."""
        fine = estimated_width(schema, "bins", settings.bins)
        width = sum(_joined(schema.columns[name], settings.groups) for name in _counted(schema))
        values = max(1, _values(schema, settings.within) if settings.within else 1)
        flops = 3.0 * 2.0 * settings.fit_steps * values * settings.components * width**2 / 3
        held = schema.public_units * schema.unit.max_records * (len(schema.columns) + 2)
        # Tables are held exact, noisy, as real numbers and as they are written; the fit holds nine of their size.
        fitted = values * settings.components * (3 * width + fine) + (9 + 4 * values) * width**2
        steps = sum(tables > 0 for tables in _tables(schema, settings))
        return Work(flops=flops, steps=steps, memory_bytes=_BYTES * (held * 3 + fitted))

    def build(self, encoder: Encoder, settings: S, seed: int) -> nn.Module:
        """Return an untrained generator."""
        from doublure.methods.statistics.tables.marginals import untaught

        return untaught(encoder, settings.within or None, settings.components)

    def train(self, job: Job, settings: S) -> nn.Module:
        """Release the tables, then fit."""
        from doublure.methods.statistics.tables.marginals import taught

        return taught(job, settings, counted_events(job)).generator


def _tables(schema: Schema, settings: TableStatisticsSettings) -> tuple[int, int]:
    """Return how many tables the two releases have."""
    columns = len(_counted(schema))
    others = columns - bool(settings.within)
    return columns, math.comb(others, 2) or int(bool(settings.within) and others == 1)


def _counted(schema: Schema) -> list[str]:
    """Return the columns that are counted: an id and what follows from another column are not."""
    return [n for n, c in schema.columns.items() if not isinstance(c, IdColumn) and n not in schema.derived]


def _values(schema: Schema, name: str) -> int:
    """Return how many declared values a column has, missing included; 0 where that is not known beforehand."""
    column = schema.columns[name]
    domain, missing = getattr(column, "domain", ()), getattr(column, "missing", None)
    known = domain and (missing is False or isinstance(missing, (bool, tuple, list)))
    return len(domain) + (missing is not False) if known else 0


def _joined(column: Column, groups: int) -> int:
    """Return into about how many groups a column is joined for pairs."""
    most = 4 * groups if column.discrete and not isinstance(column, OrdinalColumn) else groups + 2
    values = len(getattr(column, "domain", ()))
    return min(most, values + 1) if values else most


def _few_valued(schema: Schema) -> str:
    """Return the target, or else a condition, that has few enough values to count everything within each of them."""
    for name in (*schema.with_role("target"), *schema.with_role("condition")):
        if name in _counted(schema) and 2 <= _values(schema, name) <= _FEW_VALUES:
            return name
    return ""
