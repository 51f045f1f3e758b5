"""``statistics`` on related tables: a generator of units fitted to noisy counts of units.

There are three stages or more (:mod:`doublure.methods.statistics.relational.stages`), each with the releases and the
fit of a single table (:mod:`doublure.methods.statistics.tables`): the root with the number of rows of each child table;
a child's first row given the root; and its next row given the row before. Rows are drawn in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from doublure.access import Access
from doublure.errors import printable
from doublure.methods.method import Released
from doublure.methods.statistics.of_kind import StatisticsStrategy, counting
from doublure.methods.statistics.relational.stages import Stage, list_stages, stage_purpose
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables.forecast import NoiseForecast, described_relations, relation_limits
from doublure.methods.statistics.tables.method import TableStatistics
from doublure.methods.statistics.tables.plan import COPIES, PAIRS, counted_columns, plan_releases
from doublure.schema import Schema
from doublure.schema.relational import RelationalSchema
from doublure.training.job import Job
from doublure.training.settings import Work

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator

_BYTES = 8
_OF_TABLE: TableStatistics[RelationalStatisticsSettings] = TableStatistics()


class RelationalStatistics(StatisticsStrategy[RelationalStatisticsSettings]):
    """``statistics`` on related tables; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: RelationalStatisticsSettings) -> RelationalStatisticsSettings:
        del schema
        return settings

    @override
    def explained(
        self, schema: Schema, settings: RelationalStatisticsSettings, touches: tuple[Access, ...]
    ) -> tuple[str, ...]:
        related = RelationalSchema.of(schema)
        found = _hidden_relations(schema, settings, touches)
        rows = ", ".join(f"at most {related.most(name)} rows of {printable(name)}" for name in related.children)
        shares = ", ".join(
            f"{stage.name} {share:.2g}"
            for stage, share in stage_shares(list_stages(schema, anywhere=settings.anywhere), settings)
        )
        return (
            f"A unit is a row of {printable(related.root)} with {rows}, and counts once in each table of counts",
            f"Shares of the budget: {shares}",
            *_within_rows(schema, settings),
            *(line for of, hidden in found for line in described_relations(hidden, of)),
            *(f"Limit: {line}" for of, hidden in found for line in relation_limits(hidden, of)),
        )

    @override
    def noise_limits(
        self,
        schema: Schema,
        settings: RelationalStatisticsSettings,
        touches: tuple[Access, ...],
        released: Released,
    ) -> tuple[str, ...]:
        found = _hidden_relations(schema, settings, touches)
        return tuple(line for of, hidden in found for line in relation_limits(hidden, of))

    @override
    def shown_together(
        self, schema: Schema, settings: RelationalStatisticsSettings, touches: tuple[Access, ...]
    ) -> dict[str, tuple[Access, ...]]:
        related, found = RelationalSchema.of(schema), dict[str, tuple[Access, ...]]()
        for stage in list_stages(schema, anywhere=settings.anywhere):
            name = f"count {printable(related.root if stage.child < 0 else related.children[stage.child])}"
            own = tuple(each for each in touches if each.purpose.startswith(stage_purpose(stage, "")))
            found[name] = (*found.get(name, ()), *own)
        return found

    @override
    def accesses(
        self, schema: Schema, settings: RelationalStatisticsSettings, noise_multiplier: float
    ) -> tuple[Access, ...]:
        return counting(self._wanted(schema, settings), records=schema.most_records, noise_multiplier=noise_multiplier)

    def _wanted(self, schema: Schema, settings: RelationalStatisticsSettings) -> list[tuple[str, int, float]]:
        """Return the purpose of each release, its number of tables and its share of the budget."""
        wanted = []
        for stage, share in stage_shares(list_stages(schema, anywhere=settings.anywhere), settings):
            planned = plan_releases(
                stage.schema,
                "",
                round_values=settings.round_values,
                times_of_day=settings.times_of_day,
                given=stage.given,
                told=stage.told,
            )
            wanted += [
                (stage_purpose(stage, purpose), tables, planned.shares[purpose] * share)
                for purpose, tables in planned.tables.items()
            ]
        return wanted

    @override
    def warnings(self, schema: Schema, settings: RelationalStatisticsSettings) -> tuple[str, ...]:
        related = RelationalSchema.of(schema)
        wide = [
            f"{printable(related.path_of(f'{name}.{own}'))}: {note}"
            for name, table in ((each, related.modelled(each)) for each in related.tables)
            for own in counted_columns(table)
            for note in table.columns[own].notes()
        ]
        return (*super().warnings(schema, settings), *wide)

    @override
    def needs_torch(self, settings: RelationalStatisticsSettings) -> bool:
        return False

    @override
    def work(self, schema: Schema, settings: RelationalStatisticsSettings) -> Work:
        related = RelationalSchema.of(schema)
        each = [_OF_TABLE.work(stage.schema, settings) for stage in list_stages(schema, anywhere=settings.anywhere)]
        rows = sum(related.most(name) * len(table.columns) for name, table in related.tables.items())
        records = 2 * _BYTES * rows * schema.public_units
        held = max(own.memory_bytes for own in each) + records
        return Work(
            flops=sum(own.flops for own in each),
            steps=len(self._wanted(schema, settings)),
            memory_bytes=held,
            database_bytes=held - max(own.memory_bytes - own.records_bytes for own in each),
        )

    @override
    def build(self, encoder: Encoder, settings: RelationalStatisticsSettings, seed: int) -> AnyGenerator:
        from doublure.methods.statistics.relational.fitting import build

        return build(encoder, settings)

    @override
    def train(self, job: Job, settings: RelationalStatisticsSettings) -> AnyGenerator:
        from doublure.methods.statistics.relational.fitting import fit

        return fit(job, settings)


def _hidden_relations(
    schema: Schema, settings: RelationalStatisticsSettings, touches: tuple[Access, ...]
) -> list[tuple[str, dict[str, float]]]:
    """Return what noise hides of relations within each table's rows, and from a row to the next, with its words."""
    related, found = RelationalSchema.of(schema), []
    for stage in list_stages(schema, anywhere=settings.anywhere):
        told_first = stage.told and not stage.following
        if told_first or (stage.turn == "any" and not related.of_one_table):
            continue  # another stage says how its rows' numbers go together
        name = printable(related.root if stage.child < 0 else related.children[stage.child])
        forecast = NoiseForecast.of(
            stage.schema, touches, stage_purpose(stage, ""), groups=settings.groups, given=stage.given
        )
        of = f" of {name}" if not stage.following else f" of successive rows of {name}"
        found.append((of, forecast.hidden_given() if stage.told else forecast.hidden_relations()))
        if related.of_one_table and not stage.following:
            found.append((f" of {printable(related.root)} and {name} together", forecast.hidden_given()))
    return found


def _within_rows(schema: Schema, settings: RelationalStatisticsSettings) -> tuple[str, ...]:
    """Return where relations within a row of a split table are counted."""
    stages = list_stages(schema, anywhere=settings.anywhere)
    counted = next((stage for stage in stages if stage.child >= 0), None)
    if counted is None or not any(stage.told for stage in stages):
        return ()
    names = counted_columns(counted.schema)[counted.known :]
    tables = plan_releases(counted.schema, "", round_values=settings.round_values, given=counted.given).tables
    some = tables.get(PAIRS, 0) // COPIES[PAIRS]
    unit, where = printable(schema.unit.name), "at any place" if counted.turn == "any" else "any one"
    return (
        f"Relations within a row are counted in one row of each {unit}, {where}, for all rows: pairs of "
        f"{len(names)} columns, and of these with those of the {unit}; the {some} strongest of them at most",
    )


def of_turn(stages: tuple[Stage, ...], stage: Stage, settings: RelationalStatisticsSettings) -> float:
    """Return a stage's share of its child table's."""
    turns = {each.turn for each in stages if each.child == stage.child}
    rows = settings.any_share if "any" in turns else 0.0
    left = 1 - rows
    return {"any": rows, "first": left * settings.first_share, "next": left * (1 - settings.first_share)}[stage.turn]


def stage_shares(stages: tuple[Stage, ...], settings: RelationalStatisticsSettings) -> tuple[tuple[Stage, float], ...]:
    """Return each stage with its share of the budget; they add up to 1."""
    children = {stage.child for stage in stages} - {-1}
    alone = {child for child in children if not any(s.child == child and s.following for s in stages)}
    found = []
    for stage in stages:
        share = (1 - settings.root_share) / len(children)
        if stage.child < 0:
            share = settings.root_share
        elif stage.child not in alone:
            share *= of_turn(stages, stage, settings)
        found.append((stage, share))
    return tuple(found)
