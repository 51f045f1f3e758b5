"""``statistics`` on tables: a generator fitted to noisy counts.

There are up to twelve releases, each with exact discrete Gaussian noise
(:mod:`doublure.methods.statistics.tables.plan`). The
first ones locate each column's rows and repeated values, the next count columns in groups that follow from that, a
score selects the pairs that depend on one another, and those are counted. A mixture of products is fitted to the
tables, a spanning tree of the strongest pairs is drawn within its components, and the target is drawn last. There are
no noisy gradients, and the fit can be repeated without cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from doublure.access import Access
from doublure.errors import SettingError, printable
from doublure.methods.statistics.of_kind import StatisticsStrategy, counting
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables.plan import (
    PlannedReleases,
    affordable_pairs,
    better_together,
    counted_columns,
    parse_focus,
    plan_releases,
)
from doublure.methods.statistics.tables.work import estimate_work
from doublure.schema import Schema
from doublure.training.job import Job
from doublure.training.settings import Work

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator

S = TypeVar("S", bound=TableStatisticsSettings)

_FEW_VALUES = 4


class TableStatistics(StatisticsStrategy[S]):
    """``statistics`` on tables; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        settings = settings.with_public_rows(schema)
        counted = counted_columns(schema)
        within = _few_valued(schema) if settings.within is None else settings.within
        if within and (within not in counted or not _values(schema, within)):
            raise SettingError(
                "is not a column with declared values", field="within", remedy='name one, or none: within=""'
            )
        within = within if len(counted) > 1 else ""
        asked = settings.within or settings.focus or settings.paired or settings.scored
        structure = settings.structure or ("tree" if asked else None)
        if structure == "columns" and asked:
            raise SettingError(
                "counts no pair, and nothing within a column",
                field="structure",
                remedy="leave it out, or leave out within, focus, paired and scored",
            )
        parse_focus(schema, settings.focus, within)
        within = "" if structure == "columns" else within
        return settings.model_copy(update={"within": within, "structure": structure})

    @override
    def ready(self, settings: S) -> None:
        settings.refuse_other_rows()

    @override
    def decide_noise(self, schema: Schema, settings: S, noise_multiplier: Callable[[], float]) -> S:
        if settings.seen is not None:
            raise SettingError("is filled in by the plan", field="seen", remedy="leave it out")
        if settings.paired is not None and plan_releases(schema, settings.within or "").pairs_within:
            raise SettingError(
                f"chooses nothing: all pairs are counted, within the values of {printable(settings.within or '')}",
                field="paired",
                remedy='leave it out, or count no pair within a column: within=""',
            )
        noise = noise_multiplier()
        seen = float(f"{schema.public_units / noise:.4g}")
        structure = settings.structure
        if structure is None:
            together = better_together(schema, settings.within or "", noise, round_values=settings.round_values)
            structure = "tree" if together else "columns"
        if structure == "columns":
            return settings.model_copy(update={"within": "", "structure": structure, "seen": seen})
        scored, paired = affordable_pairs(schema, settings.within or "", noise, round_values=settings.round_values)
        update = {
            "scored": settings.scored or scored or 1,
            "paired": settings.paired or paired or 1,
            "seen": seen,
            "structure": structure,
        }
        return settings.model_copy(update=update)

    @override
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        planned = _planned(schema, settings)
        return counting(
            ((purpose, tables, planned.shares[purpose]) for purpose, tables in planned.tables.items()),
            records=schema.most_records,
            noise_multiplier=noise_multiplier,
        )

    @override
    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        wide = [
            f"{printable(schema.path_of(name))}: {note}"
            for name in counted_columns(schema)
            for note in schema.columns[name].notes()
        ]
        return (*super().warnings(schema, settings), *wide)

    @override
    def explained(self, schema: Schema, settings: S) -> tuple[str, ...]:
        if settings.structure != "columns":
            return ()
        return (
            "Structure: each column is counted and drawn by itself. At this ε noise would hide most pairs of so few "
            f"{schema.unit.name} records; structure=tree counts them all the same",
        )

    @override
    def needs_torch(self, settings: S) -> bool:
        return False

    @override
    def work(self, schema: Schema, settings: S) -> Work:
        return estimate_work(schema, settings, _planned(schema, settings))

    @override
    def build(self, encoder: Encoder, settings: S, seed: int) -> AnyGenerator:
        from doublure.networks.tree import TreeGenerator

        return TreeGenerator(encoder.width, list(encoder.condition_sizes.values()))

    @override
    def train(self, job: Job, settings: S) -> AnyGenerator:
        from doublure.methods.statistics.tables.fitting import build_generator, release_and_fit

        return build_generator(job, release_and_fit(job, settings))


def _planned(schema: Schema, own: TableStatisticsSettings) -> PlannedReleases:
    return plan_releases(
        schema,
        own.within or "",
        scored=own.scored,
        paired=own.paired,
        seen=own.seen,
        round_values=own.round_values,
        together=own.structure != "columns",
    )


def _values(schema: Schema, name: str) -> int:
    """Return the number of a column's declared values, missing included; 0 if it is not public."""
    column = schema.columns[name]
    domain, missing = column.domain, column.missing
    known = domain and (missing is False or isinstance(missing, (bool, tuple, list)))
    return len(domain) + (column.missing_states or missing is not False) if known else 0


def _few_valued(schema: Schema) -> str:
    """Return the target, else a condition, with few enough values to count all else within each; empty for none."""
    for name in (*schema.with_role("target"), *schema.with_role("condition")):
        if name in counted_columns(schema) and 2 <= _values(schema, name) <= _FEW_VALUES:
            return name
    return ""
