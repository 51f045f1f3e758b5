"""Training of ``statistics`` on related tables: the releases and the fit of each stage in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from doublure.access import Access
from doublure.encode.above_root import above_root
from doublure.encode.numeric import Floats
from doublure.encode.relational import RelationalEncoder
from doublure.encode.table_values import TableValues
from doublure.errors import printable
from doublure.methods.statistics.relational.given import OneRow, StageTables, draw_what_is_given
from doublure.methods.statistics.relational.stages import (
    AS_BEFORE,
    Stage,
    above_form,
    gap_name,
    left_name,
    list_stages,
    order_gap,
    place_name,
    root_gap,
    rows_left,
    same_name,
    stage_purpose,
)
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables.fitting import build_generator, release_and_fit
from doublure.networks.related_layout import ChildPlace
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.tree import TreeGenerator
from doublure.private.executed import steps_of
from doublure.schema.columns import Column
from doublure.schema.related_table import rows_name
from doublure.schema.relational import RelationalSchema
from doublure.schema.tables import ResolvedTableSchema, TableSchema
from doublure.support.arrays import Ints
from doublure.support.progress import TitledProgress
from doublure.training.job import Job
from doublure.training.noisy_tables import NoisyTable

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_FEWEST = {False: 1.0, True: 2.0}
"""Fewest rows of a child table that a unit needs to count in the stages of first and of next rows."""


def build(encoder: Encoder, settings: RelationalStatisticsSettings) -> RelatedGenerator:
    """Return a generator without tables."""
    known = _related(encoder)
    return RelatedGenerator(known.layout, list(encoder.condition_sizes.values()), repeats=settings.anywhere)


def fit(job: Job, settings: RelationalStatisticsSettings) -> RelatedGenerator:
    """Release the tables of a job's units and fit a generator to them.

    Args:
        job: The run.
        settings: With defaults resolved.
    """
    encoder, generator = _related(job.encoder), build(job.encoder, settings)
    published: list[NoisyTable] = []
    before, units, one_row = 0, 1.0, OneRow()
    for number, stage in enumerate(list_stages(encoder.schema, anywhere=settings.anywhere)):
        prefix = stage_purpose(stage, "")
        accesses = tuple(access for access in job.accesses if access.purpose.startswith(prefix))
        own = _staged(job, encoder, stage, accesses, published).stage(f"stage{number}", after=before)
        given = None
        if stage.drawn:
            given = draw_what_is_given(generator, one_row, stage, units, np.random.default_rng(job.seed))
        tables = StageTables(own, settings, prefix, stage, given)
        tree = build_generator(own, release_and_fit(own, settings, tables)).tree
        if stage.turn != "any":
            _tree_of(generator, stage).take(tree)
        if stage.child < 0:
            units = tables.rows
        elif not stage.told and not stage.following:
            one_row = OneRow.of(stage, tree, tables)
        before += sum(steps_of(access) for access in accesses)
    job.hand_out(tuple(replace(table, columns=tuple(map(encoder.shown, table.columns))) for table in published))
    return generator


def _staged(
    job: Job, encoder: RelationalEncoder, stage: Stage, accesses: tuple[Access, ...], published: list[NoisyTable]
) -> Job:
    """Return the job of a stage's table."""
    values = StageValues(encoder, stage)
    part, least = 0, 0.0
    if stage.child >= 0:
        child = encoder.layout.children[stage.child]
        part, least = child.head.start + child.many, _FEWEST[stage.following]
    domains = [(own.first, own.last + own.nullable) for own in values.domains]
    return replace(
        job.having(part, least, values.parts, domains),
        encoder=values,
        accesses=accesses,
        hand_out=published.extend,
        progress=TitledProgress(job.progress, printable(stage.name)),
    )


def _tree_of(generator: RelatedGenerator, stage: Stage) -> TreeGenerator:
    if stage.child < 0:
        return generator.units
    found = (generator.following if stage.following else generator.first)[stage.child]
    if not isinstance(found, TreeGenerator):
        raise TypeError("a stage has a tree")
    return found


def _related(encoder: Encoder) -> RelationalEncoder:
    if not isinstance(encoder, RelationalEncoder):
        raise TypeError("statistics counts units of related tables")
    return encoder


# -- a stage as an encoder: the numbers of a unit that its table counts ------------------------------------------------


class StageValues(TableValues):
    """Encoder of a stage's rows as whole numbers, for a fit of tables.

    Args:
        encoder: The units' encoder.
        stage: The stage.

    Attributes:
        parts: ``(P,)`` places of its numbers in a unit for counting.
    """

    def __init__(self, encoder: RelationalEncoder, stage: Stage) -> None:
        layout, related = encoder.layout, encoder.related
        above = related.root if stage.child < 0 else related.tables[layout.children[stage.child].name].parent or ""
        sources = _head(encoder, above)
        parts = list(range(layout.head))
        if stage.child >= 0:
            child = layout.children[stage.child]
            parts = list(range(child.head.start, child.head.stop))
            own = encoder.tables[child.name]
            row = [(own, place, f"{child.name}.{{}}") for place in range(child.parts)]
            for place, name, facts in _above(related, child, own):
                if place != child.order or not stage.following:
                    named = above_form(f"{child.name}.{{}}", above)
                    row[place] = (TableValues(_facts({name: facts})), 0, named)
            if not stage.following:
                if stage.turn == "any":
                    turns = TableValues(_facts({place_name(child.name): rows_left(child.most + 1)}))
                    sources.append((turns, 0, "{}"))
                    parts.append(child.place)
                shown = child.any if stage.turn == "any" else child.first
                sources += row
                parts += range(shown.start, shown.stop)
            else:
                left = TableValues(_facts({left_name(child.name): rows_left(child.most)}))
                sources += [(left, 0, "{}"), *((each, place, _before(form, child.name)) for each, place, form in row)]
                if child.order >= 0:
                    order = own.columns[child.order]
                    table = TableSchema.of(related.modelled(child.name))
                    gap = TableValues(_facts({gap_name(child.name, order): order_gap(table, order)}))
                    row[child.order] = (gap, 0, "{}")
                parts += [child.left, *range(child.before.start, child.before.stop)]
                for place in child.repeats if stage.drawn else ():
                    flag = TableValues(_facts({same_name(child.name, own.columns[place]): AS_BEFORE}))
                    sources.append((flag, 0, "{}"))
                    parts.append(child.same.start + child.repeats.index(place))
                sources += row
                parts += range(child.next.start, child.next.stop)
        self._sources = sources
        self.parts: Ints = np.array(parts, dtype=np.int64)
        self.schema = sources[0][0].schema  # in which a unit has one row
        self.columns = [form.format(each.columns[place]) for each, place, form in sources]
        self.domains = tuple(each.domains[place] for each, place, _ in sources)
        self.width = len(sources)
        self.condition_sizes = encoder.condition_sizes if stage.child < 0 else {}
        self.condition_width = sum(self.condition_sizes.values())

    @override
    def axis(self, part: int, starts: Floats, cells: Ints, size: int) -> tuple[str, tuple[str, ...]]:
        encoder, place, form = self._sources[part]
        name, names = encoder.axis(place, starts, cells, size)
        return form.format(name), names


def _head(encoder: RelationalEncoder, name: str) -> list[tuple[TableValues, int, str]]:
    """Return what stands for the columns of a row that others hang on, and of those above it."""
    related, own = encoder.related, encoder.tables[name]
    row = [(own, place, f"{name}.{{}}") for place in range(own.width)]
    above = related.tables[name].parent
    if above is not None:
        return row + _head(encoder, above)
    counts = TableValues(_facts({rows_name(child): related.row_count(child) for child in related.hanging(name)}))
    return [*((counts, place, "{}") for place in range(counts.width)), *row]


def _above(schema: RelationalSchema, child: ChildPlace, own: TableValues) -> list[tuple[int, str, Column]]:
    """Return the columns counted by their gap above the parent: place in a row, name, and the gap as a column."""
    return [
        (own.columns.index(name), name, root_gap(schema, child.name, name, below, together=True))
        for name, below in above_root(schema, child.name).items()
    ]


def _before(form: str, child: str) -> str:
    return f"{child}, before" + form.removeprefix(child)


def _facts(columns: dict[str, Any]) -> ResolvedTableSchema:
    return ResolvedTableSchema(doublure=1, kind="table", units=1, columns=columns)
