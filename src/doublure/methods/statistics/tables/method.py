"""``statistics`` on tables: one noisy release of the data's one- and two-way tables teaches a generator.

Two releases, each with exact discrete Gaussian noise: every column's values in fine public bins, then every pair of
columns in groups that follow from the first. Where a target (or a condition) has few values, all of it is counted
within each of them, which costs nothing more: a record still falls in one cell of each table. A mixture of products is
then fitted to the noisy tables (:mod:`doublure.methods.statistics.tables.mixture_fit`). No record is looked at twice,
there are no noisy gradients, and the fit can be repeated for nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from doublure.access import Access
from doublure.encode.columns import estimated_width
from doublure.errors import SettingError
from doublure.methods.method import Job, Work
from doublure.methods.statistics.settings import StatisticsSettings, counted_events, counting
from doublure.schema import Schema
from doublure.schema.columns import Column, IdColumn, OrdinalColumn

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_FEW_VALUES = 4
_FEWEST_COMPONENTS = 16
_BYTES = 4


class TableStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on tables.

    Attributes:
        within: The column within whose values everything else is counted; None: the target, or else a condition, if
            it has few declared values; an empty text: none.
        single_share: The share of the budget for columns alone.
        groups: Into how many groups a number is joined for pairs, about.
        components: Rows of probabilities in the generator, for each value of ``within``.
        starts: Into how many fits, each from a random start of its own, the components are divided: what one takes of
            the noise for a pattern the others do not. A fit has 16 components at least, if there are so many.
        fit_steps: Steps of the fit at most; it ends when the tables are matched as closely as their noise allows.
        prior: How strongly the fit holds each component to the columns' own shares.
        bins: The most fine bins a number is cut into.
        numerics: Numbers are always counted in public bins.
    """

    within: str | None = None
    single_share: float = Field(default=0.3, ge=0.01, le=0.99)
    groups: int = Field(default=16, ge=2, le=200)
    components: int = Field(default=256, ge=1, le=10_000)
    starts: int = Field(default=4, ge=1, le=64)
    fit_steps: int = Field(default=1500, ge=1, le=1_000_000)
    prior: float = Field(default=0.3, ge=0, le=1e6)
    bins: int = Field(default=128, ge=2, le=1000)
    numerics: Literal["bins"] = "bins"

    @property
    def fits(self) -> list[int]:
        """How many components each fit has."""
        count = min(self.starts, max(1, self.components // _FEWEST_COMPONENTS))
        return [self.components // count + (place < self.components % count) for place in range(count)]

    @property
    def noise_source(self) -> str:
        """The noise is exact."""
        return "opendp discrete Gaussian"

    def settled(self, schema: Schema) -> Self:
        """Decide within which column to count, from declared facts."""
        counted = _counted(schema)
        within = _few_valued(schema) if self.within is None else self.within
        if within and (within not in counted or not _values(schema, within)):
            raise SettingError(
                "is not a column with declared values", field="within", remedy='name one, or none: within=""'
            )
        return self.model_copy(update={"within": within if len(counted) > 1 else ""})

    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """One access a release; their noise together is that of one Gaussian of this multiplier."""
        singles, pairs = self._tables(schema)
        releases = (
            ("count each column's values", singles, self.single_share if pairs else 1.0),
            ("count each pair of columns", pairs, 1.0 - self.single_share),
        )
        return counting(releases, records=schema.unit.max_records, noise_multiplier=noise_multiplier)

    def work(self, schema: Schema) -> Work:
        """Return what counting and fitting compute and hold."""
        fine = estimated_width(schema, "bins", self.bins)
        width = sum(_joined(schema.columns[name], self.groups) for name in _counted(schema))
        values = max(1, _values(schema, self.within) if self.within else 1)
        flops = 3.0 * 2.0 * self.fit_steps * values * self.components * width**2 / 3
        held = schema.public_units * schema.unit.max_records * (len(schema.columns) + 2)
        # Tables are held exact, noisy, as real numbers and as they are written; the fit holds nine of their size.
        fitted = values * self.components * (3 * width + fine) + (9 + 4 * values) * width**2
        steps = sum(tables > 0 for tables in self._tables(schema))
        return Work(flops=flops, steps=steps, memory_bytes=_BYTES * (held * 3 + fitted))

    def build(self, encoder: Encoder, seed: int) -> nn.Module:
        """Return an untaught generator."""
        from doublure.methods.statistics.tables.marginals import untaught

        return untaught(encoder, self.within or None, self.components)

    def train(self, job: Job) -> nn.Module:
        """Release the tables, then fit."""
        from doublure.methods.statistics.tables.marginals import taught

        return taught(job, self, counted_events(job)).generator

    def _tables(self, schema: Schema) -> tuple[int, int]:
        """Return how many tables the two releases have."""
        columns = len(_counted(schema))
        others = columns - bool(self.within)
        return columns, math.comb(others, 2) or int(bool(self.within) and others == 1)


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
