"""List the cells of a table that do not fit its schema, for the data owner only.

The list is private, and is written only to a file of mode 0600; a terminal shows columns, rules and counts.
Declare what is public of any such table, never what you see in the list.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.relational import open_related
from doublure.data.series.opening import open_series
from doublure.data.series.sources import series_schema
from doublure.data.tables import cells
from doublure.data.tables.arrow_cells import Raw, as_series
from doublure.data.tables.arrow_text import unwrapped
from doublure.data.tables.csv_records import UNREAD
from doublure.data.tables.opening import TableSource, open_table
from doublure.data.tables.rules import find_violations
from doublure.drafting.owner_notes import OwnerNote
from doublure.errors import DataError, SettingError, printable
from doublure.schema.columns import Column
from doublure.schema.columns.number_cells import NotWholeNumbers
from doublure.schema.distinct_cells import distinct
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.schema import Schema
from doublure.schema.tables import TableSchema
from doublure.support.files import check_output, write_atomic

_HEADER = ("row", "column", "cell", "why")
BEYOND = "lies beyond the bounds, and counts as the nearest"
EMPTY = "is empty, and the schema says missing: false"
_BROKEN = "the row breaks a rule: "
_TAKEN = "; a fit takes it all the same"
_UNREADABLE = "the line of this number cannot be read"
_SPREADSHEET = ("=", "+", "-", "@", "\t", "\r")


_UNPLACED = "is empty, and a reading needs it"
NAMELESS = "names no unit"
Seen: TypeAlias = Counter[str]
"""Table -> how many records were looked at; under no name, those of the only one."""


class MisfitReason(Enum):
    """A kind of misfit."""

    UNREAD = "the cell cannot be read"
    FRACTION = "the cell is a number, and not whole"
    EMPTY = "the cell is empty"
    BEYOND = "the cell lies beyond the bounds"
    GAP = "a step has no value"
    LINE = "the line cannot be read"
    UNIT = "the record names no unit"
    RULE = "the row breaks a rule"
    KEPT = "the row breaks a rule that synthetic rows keep all the same"
    WHOLE = "the series together break a rule"

    @property
    def unread(self) -> bool:
        """Whether the cell cannot be read, so that another form of it may have to be declared."""
        return self in (MisfitReason.UNREAD, MisfitReason.FRACTION)

    @property
    def tolerated(self) -> bool:
        """Whether a fit takes a record with such a misfit."""
        return self in (MisfitReason.BEYOND, MisfitReason.KEPT)


class Misfit(NamedTuple):
    """A cell that does not fit. Private.

    Attributes:
        row: Its record, from 1; of a sheet from the number beside the first one, empty rows left out; of a gap and
            of arrays, its series; None for all of them.
        column: Its column; of a rule, all that it is about.
        cell: What stands there; empty for a rule.
        why: It does not fit, in words.
        reason: What that is; a fit is refused for it unless it is tolerated, or ``misfit`` says coerce.
    """

    row: int | None
    column: str
    cell: str
    why: str
    reason: MisfitReason


class CountedMisfit(NamedTuple):
    """Misfits that are counted together.

    Attributes:
        column: Their column.
        why: They do not fit, in words.
        reason: What that is.
    """

    column: str
    why: str
    reason: MisfitReason


def list_misfits(
    schema: Schema,
    data: str | Path | pd.DataFrame,
    out: str | Path,
    *,
    notes: Sequence[OwnerNote] = (),
    force: bool = False,
    seen: Seen | None = None,
) -> dict[CountedMisfit, int]:
    """Write every cell that does not fit into a CSV file that only its owner can read.

    Args:
        schema: Of a table, of related ones, or of series; what is undeclared is not asked for.
        data: The table, the folder of related ones, or the series.
        out: Where to write.
        notes: Private notes on columns that are written beside.
        force: Replace a file that is there already.
        seen: Is told how many records were looked at.

    Returns:
        How many cells, by column and reason: those that a fit is refused for first.

    Raises:
        SettingError: The schema is of a kind without such a list.
        DataError: The data cannot be read.
        InputError: The file cannot be written there.
    """
    path = Path(out)
    read = data if isinstance(data, Path) else Path(data) if isinstance(data, str) else None
    check_output(path, read, forced=force, flag="--values")
    text, counts = io.StringIO(newline=""), Counter[CountedMisfit]()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for note in notes:
        writer.writerow(("", _text(printable(note.column)), "", str(note)))
    for found in MISFITS[schema.kind](schema, data, Counter() if seen is None else seen):
        counts[CountedMisfit(found.column, found.why, found.reason)] += 1
        writer.writerow((found.row, _text(found.column), _text(found.cell), found.why))
    write_atomic(path, lambda file: file.write(text.getvalue().encode("utf-8", "backslashreplace")), mode=0o600)
    order = sorted(counts, key=lambda each: (each.reason.tolerated, each.column, each.why))
    return {each: counts[each] for each in order}


def mostly(counts: Mapping[CountedMisfit, int], seen: Seen) -> dict[str, int]:
    """Return how often a column does not fit, where most records do not: a fit would learn of noise and little else.

    Args:
        counts: Of :func:`list_misfits`.
        seen: As it filled it.
    """
    found = Counter[str]()
    for each, count in counts.items():
        if each.reason is not MisfitReason.KEPT:
            found[each.column] += count
    return {name: count for name, count in found.items() if 2 * count > seen.get(name.partition(".")[0], seen[""]) > 0}


def _text(cell: str) -> str:
    """Return a cell of the list, or a name in it, that no spreadsheet takes for a formula."""
    return f"'{cell}" if cell.startswith(_SPREADSHEET) and not _plain(cell) else cell


def _plain(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def misfits(schema: Schema, data: str | Path | pd.DataFrame, seen: Seen | None = None) -> Iterator[Misfit]:
    """Yield every cell that does not fit, and every record that breaks a rule and whose own cells fit. Private.

    Records that cannot be read come first, by their lines in their files.

    Args:
        schema: Of a table.
        data: The table.
        seen: Is told how many records were looked at.

    Raises:
        DataError: The container cannot be read, or a column is not there.
    """
    described = TableSchema.of(schema)
    source = open_table(data, described.written)
    source.check(described)
    yield from _of_source(described, source, Counter() if seen is None else seen)


def _of_related(schema: Schema, data: Any, seen: Seen) -> Iterator[Misfit]:
    """Yield those of each table, its columns named ``table.column``."""
    described = RelationalSchema.of(schema)
    source = open_related(data, described.written)
    source.check(described)
    for name in described.tables:
        table = described.table(name)
        for found in _of_source(table, source.tables[name], seen, name):
            yield found._replace(column=f"{name}.{found.column}")


def _of_series(schema: Schema, data: Any, seen: Seen) -> Iterator[Misfit]:
    """Yield cells that do not fit; steps without a value; and what else a fit is refused for.

    Of a step without a value ``row`` is the series and ``cell`` the moment.
    """
    del seen  # a misfit is a cell's, and a record a series
    described = series_schema(schema)
    source = open_series(data, described.written)
    source.check(described)
    found = set[tuple[str, MisfitReason]]()
    for columns, table, each, needed in source.cell_tables(described):
        for misfit in _of_cells(columns, table, needed):
            found.add((misfit.column, misfit.reason))
            yield misfit if each == 1 or misfit.row is None else misfit._replace(row=1 + (misfit.row - 1) // each)
    for gap in source.gaps(schema):
        found.add((gap.channel, MisfitReason.GAP))
        yield Misfit(gap.series, gap.channel, gap.moment, gap.why, MisfitReason.GAP)
    if any(reason is MisfitReason.LINE for _, reason in found):  # no reading goes on past such a line
        return
    listed = {column for column, reason in found if not reason.tolerated}
    for error in source.refused(schema, listed):
        yield Misfit(None, error.field or "", "", f"{error.message}; {error.remedy}", MisfitReason.WHOLE)


def not_listed(schema: Schema, data: Any, seen: Seen) -> Iterator[Misfit]:
    """Refuse data whose cells are no texts."""
    del data, seen
    raise SettingError(f"is for tables and series, not {schema.kind}", field="--values", remedy="leave it out")


MISFITS: ByKind[Callable[[Schema, Any, Seen], Iterator[Misfit]]] = ByKind(
    "list of misfits",
    table=misfits,
    visits=misfits,
    relational=_of_related,
    series=_of_series,
    images=not_listed,
)


def _of_source(schema: TableSchema, source: TableSource, seen: Seen, table: str = "") -> Iterator[Misfit]:
    wanted = {name: column for name, column in schema.columns.items() if column.modelled}
    yield from _of_cells(wanted, source, rules=schema, seen=seen, table=table)


def _of_cells(
    wanted: Mapping[str, Column],
    source: TableSource,
    needed: Collection[str] = (),
    rules: TableSchema | None = None,
    seen: Seen | None = None,
    table: str = "",
) -> Iterator[Misfit]:
    """Yield the cells of columns that do not fit, and the rows that break a schema's rules.

    Args:
        wanted: The columns.
        source: Where they stand.
        needed: Those that may not be empty, whatever is declared of them.
        rules: The schema of these rules, and of the column that names units.
        seen: Is told how many records were looked at.
        table: Under which name.
    """
    unit = None if rules is None else rules.unit.id
    for file, unread in source.unread():
        yield Misfit(unread.line, printable(file), "", f"{_UNREADABLE}: it has {unread.rule}", MisfitReason.LINE)
    first = source.first_row
    for standing, raw in source.both(list(dict.fromkeys([*wanted, *([] if unit is None else [unit])]))):
        frame, unfit = {}, dict[str, set[int]]()
        rows = 0
        lost = _unread(raw)
        for name, column in wanted.items():
            series = unwrapped(as_series(raw[name], name))
            rows = len(series)
            found, frame[name] = _of_column(series, column, name, empty=_UNPLACED if name in needed else None)
            for row, misfit in found:
                if lost[row]:
                    continue
                if misfit.reason is not MisfitReason.BEYOND:  # a rule takes such a cell as it stands, as a fit does
                    unfit.setdefault(name, set()).add(row)
                cell = misfit.cell if standing is raw else _shown(standing[name], name, row)
                yield misfit._replace(row=first + row, cell=cell)
        for row, misfit in () if rules is None else _of_rules(rules, pd.DataFrame(frame), unfit):
            if not lost[row]:
                yield misfit._replace(row=first + row)
        if rules is not None and unit is not None:
            nameless = [row for row in _nameless(raw, unit, rules) if not lost[row]]
            yield from (Misfit(first + row, unit, "", NAMELESS, MisfitReason.UNIT) for row in nameless)
        first += rows
    if seen is not None:
        seen[table] += first - 1


def _nameless(raw: Mapping[str, Raw], unit: str, schema: TableSchema) -> list[int]:
    """Return the records that name no unit, by rows from 0."""
    ids = cells.unit_ids(as_series(raw[unit], unit), unit, schema.columns[unit].missing_tokens, "coerce")
    return np.flatnonzero(ids.isna()).tolist()


def _shown(raw: Raw, name: str, row: int) -> str:
    """Return a cell as it stands."""
    cell = unwrapped(as_series(raw[row : row + 1], name)).astype(object).iloc[0]
    return "" if pd.isna(cell) is True else str(cell)


def _unread(raw: Mapping[str, Raw]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return ``(N,)``: of which records no cell can be read."""
    series = [as_series(column, name).astype(object) for name, column in raw.items()]
    lost = [column.eq(UNREAD).fillna(False).to_numpy(dtype=np.bool_) for column in series]
    return np.asarray(np.logical_and.reduce(lost))


def _of_column(
    raw: pd.Series[Any], column: Column, name: str, *, empty: str | None = None
) -> tuple[list[tuple[int, Misfit]], pd.Series[Any]]:
    """Return what does not fit, by rows from 0, and the column's canonical cells; empty where one is none.

    Args:
        raw: Its cells.
        column: What is public of it.
        name: Its name.
        empty: Why it may have no empty cell, whatever is declared of it.
    """
    if empty is None and column.missing is False:
        empty = EMPTY
    refused_empty = None if empty is None else (empty, MisfitReason.EMPTY)
    codes, uniques = distinct(raw)
    lenient = column.model_copy(update={"missing": True}) if column.missing is False else column
    why = _reasons(uniques, lenient, name)
    fitting = [cell if reason is None else None for cell, reason in zip(uniques, why, strict=True)]
    read = cells.canonical(pd.Series([*fitting, None], dtype=object), lenient, name)
    nothing, beyond = read.isna().to_numpy(), _beyond(read, column)
    for place, reason in enumerate(why):
        if reason is not None:
            continue
        if nothing[place]:
            why[place] = refused_empty
        elif beyond[place]:
            why[place] = (BEYOND, MisfitReason.BEYOND)
    why.append(refused_empty)  # the place of cells that are nothing at all: -1
    wrong = np.array([reason is not None for reason in why], dtype=bool)[codes]
    found = []
    for row in np.flatnonzero(wrong):
        if (reason := why[codes[row]]) is not None:
            cell = "" if codes[row] < 0 else str(uniques[codes[row]])
            found.append((int(row), Misfit(None, name, cell, *reason)))
    return found, read.iloc[codes].reset_index(drop=True)


def _reasons(uniques: Sequence[object], column: Column, name: str) -> list[tuple[str, MisfitReason] | None]:
    """Return why each of some distinct cells cannot be read, in words and as a reason; None where it can.

    They are found by halves.
    """
    try:
        cells.canonical(pd.Series([*uniques], dtype=object), column, name)
    except DataError as error:
        if len(uniques) == 1:
            fraction = isinstance(error, NotWholeNumbers)
            return [(error.message, MisfitReason.FRACTION if fraction else MisfitReason.UNREAD)]
        half = len(uniques) // 2
        return [*_reasons(uniques[:half], column, name), *_reasons(uniques[half:], column, name)]
    return [None] * len(uniques)


def _beyond(read: pd.Series[Any], column: Column) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return ``(N,)``: which canonical cells lie outside the bounds; a missing one does not."""
    ends = column.ends
    if ends is None:
        return np.zeros(len(read), dtype=bool)
    numbers = column.numbers_of(read)
    outside: np.ndarray[Any, np.dtype[np.bool_]] = (numbers < ends[0]) | (numbers > ends[1])
    return outside


def _of_rules(schema: TableSchema, frame: pd.DataFrame, unfit: Mapping[str, set[int]]) -> Iterator[tuple[int, Misfit]]:
    """Yield, by rows from 0, the records that break a rule, but for those whose own cells do not fit.

    Args:
        schema: Its rules.
        frame: Canonical cells.
        unfit: Column -> rows whose cell does not fit.
    """
    for rule in schema.constraints:
        if not rule.settled(schema.columns):
            continue
        why = f"{_BROKEN}{rule.requirement(schema.columns)}{_TAKEN if rule.encoded else ''}"
        unknown = set[int]().union(*(unfit.get(name, ()) for name in rule.names))
        for row in np.flatnonzero(find_violations(rule, frame, schema.columns)):
            if row in unknown:
                continue
            about = ", ".join(map(printable, rule.names))
            yield int(row), Misfit(None, about, "", why, MisfitReason.KEPT if rule.encoded else MisfitReason.RULE)
