"""The proposed size of a release, in records of whom: from public facts and released answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from doublure.errors import counted
from doublure.run.synthesizer import Synthesizer
from doublure.schema.kinds import KINDS
from doublure.schema.relational import RelationalSchema
from doublure.schema.rules.rule import list_names
from doublure.training.noisy_tables import NoisyTable


@dataclass(frozen=True, kw_only=True)
class ReleaseSize:
    """The proposed size of a release.

    Attributes:
        n: Number of records, as ``release`` takes it.
        records: What these are, in the plural.
        sentence: Whose they are, and where the number comes from.
    """

    n: int
    records: str
    sentence: str


def release_size(syn: Synthesizer) -> ReleaseSize:
    """Return the number of records that a release is proposed to hold: as many as the real data has, as far as known.

    Where a unit has several rows that stand alone, the noisy tables say how many rows there are.

    Args:
        syn: A fitted synthesizer.

    Raises:
        RunFolderError: The file of its noisy tables is missing or damaged.

    Example:
        >>> from doublure.releasing.sizes import release_size
        >>> release_size(syn).sentence
        '400 rows, one for each person.'
    """
    schema, unit = syn.schema, syn.schema.unit
    units, records = syn.schema.public_units, KINDS[syn.schema.kind].lines
    if root := getattr(schema, "root", ""):  # of related tables
        others = [name for name in RelationalSchema.of(schema).tables if name != root]
        said = (
            f"{counted(units, 'row')} of {root}, one for each {unit.name}; rows of {list_names(others)} come with them."
        )
        return ReleaseSize(n=units, records=f"rows of {root}", sentence=said)
    if not schema.only_columns:
        records = KINDS[schema.kind].records
        said = f"{syn.default_n:,} {records}: the public number of those protected."
        return ReleaseSize(n=syn.default_n, records=records, sentence=said)
    if unit.per_unit:
        said = (
            f"{counted(syn.default_n, 'row')}, of about {units:,} {_several(unit.name)}; rows of one belong together."
        )
        return ReleaseSize(n=syn.default_n, records=records, sentence=said)
    if unit.id is None or unit.max_records == 1:
        whose = f"one for each {unit.name}" if not unit.each_record else "the public number of rows"
        return ReleaseSize(n=units, records=records, sentence=f"{counted(units, 'row')}, {whose}.")
    told = count_of_rows(syn.tables)
    if told is None:
        shown = f"{counted(units, 'row')}, as many as there are {_several(unit.name)}"
        said = f"{shown}: how many rows these have is not public."
        return ReleaseSize(n=units, records=records, sentence=said)
    rows, error = max(1, round(told[0])), math.ceil(told[1])
    said = (
        f"{counted(rows, 'row')} (standard error {error:,}), as the noisy counts of the fit say: those of {units:,} "
        f"{_several(unit.name)}, at most {unit.max_records} of each. Every synthetic row stands alone."
    )
    return ReleaseSize(n=rows, records=records, sentence=said)


def count_of_rows(tables: Sequence[NoisyTable]) -> tuple[float, float] | None:
    """Return the number of rows by the totals of noisy tables, and its standard error; None without tables.

    Every table counts all rows. Its total has the variance of one count times its cells. Totals are weighted by their
    precision, which gives the unbiased mean of least variance.

    Args:
        tables: As a fit released them.
    """
    if not tables:
        return None
    precisions = [1.0 / (table.counts.size * table.standard_error**2) for table in tables]
    totals = [float(table.counts.sum()) for table in tables]
    weight = math.fsum(precisions)
    mean = math.fsum(total * each for total, each in zip(totals, precisions, strict=True)) / weight
    return mean, 1.0 / math.sqrt(weight)


def _several(name: str) -> str:
    """Return several of what a unit is called: ``people``, ``patients``, ``cities``."""
    if name == "person":
        return "people"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return name if name.endswith("s") else f"{name}s"
