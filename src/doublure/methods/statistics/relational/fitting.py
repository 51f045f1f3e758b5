"""Training of ``statistics`` on related tables: each stage's releases and fit, one after the other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from doublure.access import Access
from doublure.encode.above_root import above_root
from doublure.encode.grids import Floats
from doublure.encode.pairwise_swapping import Ints
from doublure.encode.relational import RelationalEncoder
from doublure.encode.table_values import TableValues
from doublure.methods.statistics.relational.stages import (
    Stage,
    above_form,
    above_of,
    count_name,
    count_of,
    gap_name,
    gap_of,
    left_name,
    purpose_of,
    rows_left,
    stages_of,
)
from doublure.methods.statistics.settings import RelationalStatisticsSettings
from doublure.methods.statistics.tables.fitting import finished, fitted_mixture
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.networks.related_layout import ChildPlace
from doublure.networks.related_units import RelatedGenerator
from doublure.networks.tree import TreeGenerator
from doublure.private.executed import steps_of
from doublure.schema.columns import Column
from doublure.schema.relational import RelationalSchema
from doublure.schema.tables import ResolvedTableSchema, TableSchema
from doublure.training.job import Job
from doublure.training.noisy_tables import NoisyTable

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_FEWEST = {False: 1.0, True: 2.0}
"""How many rows a unit has to have of a child table, to show its first and its next one."""


def initialised(encoder: Encoder) -> RelatedGenerator:
    """Return a generator without tables."""
    return RelatedGenerator(_related(encoder).layout, list(encoder.condition_sizes.values()))


def fitted(job: Job, settings: RelationalStatisticsSettings) -> RelatedGenerator:
    """Release the tables of a job's units and fit a generator to them.

    Args:
        job: The run.
        settings: With defaults resolved.
    """
    encoder, generator = _related(job.encoder), initialised(job.encoder)
    published: list[NoisyTable] = []
    before = 0
    for number, stage in enumerate(stages_of(encoder.schema)):
        prefix = purpose_of(stage, "")
        accesses = tuple(access for access in job.accesses if access.purpose.startswith(prefix))
        own = _staged(job, encoder, stage, accesses, published).stage(f"stage{number}", after=before)
        tables = StageTables(own, settings, prefix, stage.known)
        tree = finished(own, fitted_mixture(own, settings, tables))
        _tree_of(generator, stage).take(tree.tree)
        before += sum(steps_of(access) for access in accesses)
    job.hand_out(tuple(published))
    return generator


class StageTables(NoisyTables):
    """A stage's releases: what is given when rows are drawn stands first in the tree, and hangs on nothing else.

    Args:
        job: The stage.
        settings: Of the method.
        prefix: What its releases' purposes begin with.
        known: How many parts of a row are given; their nodes are the first ones.
    """

    def __init__(self, job: Job, settings: RelationalStatisticsSettings, prefix: str, known: int) -> None:
        super().__init__(job, settings)
        self._known = known
        self._events = {purpose.removeprefix(prefix): event for purpose, event in self._events.items()}
        self._numbers = {purpose.removeprefix(prefix): number for purpose, number in self._numbers.items()}

    @override
    def _spanning(self) -> list[tuple[int, int]]:
        inside, edges = [0], []
        while len(inside) < len(self.nodes):
            given = len(inside) < self._known
            outside = [n for n in range(len(self.nodes)) if n not in inside and (not given or n < self._known)]
            parent, child = max(
                ((one, other) for one in inside for other in outside), key=lambda pair: float(self.scores[pair])
            )
            edges.append((parent, child))
            inside.append(child)
        return edges


def _staged(
    job: Job, encoder: RelationalEncoder, stage: Stage, accesses: tuple[Access, ...], published: list[NoisyTable]
) -> Job:
    """Return the job as a stage's table asks it."""
    values, records = StageValues(encoder, stage), job.records
    part, least = (stage.child, _FEWEST[stage.following]) if stage.child >= 0 else (0, 0.0)
    return replace(
        job,
        encoder=values,
        records=records.having(part, least, values.parts),
        accesses=accesses,
        hand_out=published.extend,
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


# -- a stage as an encoder: which numbers of a unit its table counts ---------------------------------------------------


class StageValues(TableValues):
    """A stage's rows as whole numbers: what a fit of tables asks an encoder.

    Args:
        encoder: Of the units.
        stage: Which.

    Attributes:
        parts: ``(P,)`` where its numbers stand in a unit as it is counted.
    """

    def __init__(self, encoder: RelationalEncoder, stage: Stage) -> None:
        layout, root = encoder.layout, encoder.schema.root
        related = encoder.schema
        counts = TableValues(_facts({count_name(name): count_of(related, name) for name in related.children}))
        sources: list[tuple[TableValues, int, str]] = [(counts, place, "{}") for place in range(len(layout.children))]
        sources += [(encoder.tables[root], place, f"{root}.{{}}") for place in range(layout.root)]
        parts = list(range(len(layout.children) + layout.root))
        if stage.child >= 0:
            child = layout.children[stage.child]
            own = encoder.tables[child.name]
            row = [(own, place, f"{child.name}.{{}}") for place in range(child.parts)]
            for place, name, facts in _above(related, child, own):
                if place != child.order or not stage.following:
                    named = above_form(f"{child.name}.{{}}", root)
                    row[place] = (TableValues(_facts({name: facts})), 0, named)
            if not stage.following:
                sources += row
                parts += range(child.first.start, child.first.stop)
            else:
                left = TableValues(_facts({left_name(child.name): rows_left(child.most)}))
                sources += [(left, 0, "{}"), *((each, place, _before(form, child.name)) for each, place, form in row)]
                if child.order >= 0:
                    order = own.columns[child.order]
                    table = TableSchema.of(related.modelled(child.name))
                    gap = TableValues(_facts({gap_name(child.name, order): gap_of(table, order)}))
                    row[child.order] = (gap, 0, "{}")
                sources += row
                parts += [child.left, *range(child.before.start, child.next.stop)]
        self._sources = sources
        self.parts: Ints = np.array(parts, dtype=np.int64)
        self.schema = counts.schema  # which says of a unit that it has one row
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


def _above(schema: RelationalSchema, child: ChildPlace, own: TableValues) -> list[tuple[int, str, Column]]:
    """Return the columns that are counted by their gap above the root: place in a row, name, the gap as a column."""
    return [
        (own.columns.index(name), name, above_of(schema, child.name, name, below, together=True))
        for name, below in above_root(schema, child.name).items()
    ]


def _before(form: str, child: str) -> str:
    return f"{child}, before" + form.removeprefix(child)


def _facts(columns: dict[str, Any]) -> ResolvedTableSchema:
    return ResolvedTableSchema(doublure=1, kind="table", units=1, columns=columns)
