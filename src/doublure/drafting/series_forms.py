"""Forms of a table of series: steps side by side, moments in parts, and columns that number rows.

They are told by names, storage types and the form of the first thousand cells: 19 in 20 have to share it, so that no
single record decides. No value or count leaves this module.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from doublure.data.tables.opening import TableSource
from doublure.drafting.storage_types import FEWEST, SHARE, Storage, first_cells
from doublure.errors import printable
from doublure.schema.rules.rule import list_names
from doublure.schema.series import SERIES, STEP
from doublure.schema.unit import Unit, is_id_name, unit_word

JOINED = "time"
"""The column of moments that a draft proposes to join from parts."""
SHARED = (
    "rows share a {time}, so they are of different things; name the column that says which in unit.id, or write unit: "
    "{{name: series, id: none}}"
)
"""The notice to the owner of rows that are series, of which several begin at one moment."""
_STEP = re.compile(r"(.+)_0*(\d{1,9})", re.ASCII)
_NUMBERS = ("integer", "real")
_ROW_NAMES = frozenset({"", "#", "no", "number", "num", "row", "rows", "index", "unnamed: 0", "sno", "serial"})
"""Names under which files number their rows. A meter may count up by one, too, and is a channel."""
_PARTS = {
    "year": ("year", "yr", "yyyy"),
    "month": ("month", "mon", "mo"),
    "day": ("day", "dy", "mday"),
    "hour": ("hour", "hr", "hh"),
    "minute": ("minute", "min", "mn"),
}
"""Parts of a moment -> names of their columns, in the order in which they follow one another."""
_NEEDED = ("year", "month", "day")


class SideBySide(NamedTuple):
    """Steps of series that stand side by side in a row.

    Attributes:
        channels: Channel -> the columns of its steps, from 0.
        length: How many steps each has; None where channels differ.
    """

    channels: Mapping[str, Sequence[str]]
    length: int | None

    @property
    def columns(self) -> frozenset[str]:
        """All columns of steps."""
        return frozenset(name for each in self.channels.values() for name in each)


_NO_STEPS = SideBySide({}, None)


def side_by_side(stored: Mapping[str, Storage]) -> SideBySide:
    """Return the channels whose steps are columns of numbers named ``load_0``, ``load_1``, … without a gap.

    Example:
        >>> side_by_side({"meter": "text", "load_0": "real", "load_1": "real"})
        SideBySide(channels={'load': ('load_0', 'load_1')}, length=2)
    """
    found: dict[str, dict[int, str]] = {}
    for name, storage in stored.items():
        if storage in _NUMBERS and (match := _STEP.fullmatch(name)) is not None:
            found.setdefault(match.group(1), {})[int(match.group(2))] = name
    channels = {
        channel: tuple(steps[number] for number in range(len(steps)))
        for channel, steps in found.items()
        if len(steps) > 1 and sorted(steps) == [*range(len(steps))] and channel not in stored
    }
    lengths = {len(steps) for steps in channels.values()}
    return SideBySide(channels, lengths.pop() if len(lengths) == 1 else None)


def moment_parts(stored: Mapping[str, Storage]) -> dict[str, str]:
    """Return the columns of whole numbers that together are a moment: part -> column; none without a day.

    Example:
        >>> moment_parts({"yr": "integer", "month": "integer", "day": "integer", "hour": "integer", "no": "integer"})
        {'year': 'yr', 'month': 'month', 'day': 'day', 'hour': 'hour'}
    """
    named = {name.strip().lower(): name for name, storage in stored.items() if storage in ("integer", "year")}
    found = dict[str, str]()
    for part, names in _PARTS.items():
        own = next((named[name] for name in names if name in named), None)
        if own is None:
            break
        found[part] = own
    return found if all(part in found for part in _NEEDED) else {}


def joining(parts: Mapping[str, str], file: str) -> list[str]:
    """Return what a draft says of a moment in parts, and the lines of Python that join them.

    Args:
        parts: As :func:`moment_parts` returns them.
        file: The data's name.
    """
    names = [*parts.values()]
    pairs = ", ".join(f"{part!r}: f[{name!r}]" for part, name in parts.items())
    return [
        f"{list_names(names)} are parts of one moment, and a draft reads one column of moments. Join "
        f"them, as below; this schema describes the file that comes of it.",
        "  import pandas as pd",
        f"  f = pd.read_csv({file!r})" if file.lower().endswith(".csv") else "  f = DATA  # as a DataFrame",
        f"  f.insert(0, {JOINED!r}, pd.to_datetime({{{pairs}}}))",
        f"  f.drop(columns={names!r}).to_csv('joined.csv', index=False)",
    ]


def differs(cells: pd.Series[Any]) -> bool:
    """Return whether nearly every one of the first cells is another, as ids of single rows are."""
    present = cells.dropna()
    return len(present) >= FEWEST and present.nunique() >= SHARE * len(present)


def numbers_rows(cells: pd.Series[Any]) -> bool:
    """Return whether nearly every one of the first cells is one more than the last, as numbers of rows are."""
    steps = pd.to_numeric(cells, errors="coerce").diff().iloc[1:]
    return len(steps) >= FEWEST and bool((steps == 1).mean() >= SHARE)


def _names_rows(cells: pd.Series[Any]) -> bool:
    """Return whether cells are texts, nearly each another, and no numbers with a decimal comma."""
    texts = cells.dropna().astype(str)
    numbers = pd.to_numeric(texts.str.replace(",", ".", regex=False), errors="coerce")
    return differs(cells) and bool(numbers.isna().mean() >= SHARE)


def _is_row_number(cells: pd.Series[Any]) -> bool:
    """Return whether cells number the rows, by their values and their column's name."""
    name = str(cells.name)
    return (name.strip().strip(".").lower() in _ROW_NAMES or is_id_name(name)) and numbers_rows(cells)


def repeats(cells: pd.Series[Any]) -> bool:
    """Return whether one in 20 of the first cells or more has stood before."""
    present = cells.dropna()
    return len(present) >= FEWEST and present.nunique() <= SHARE * len(present)


@dataclass(frozen=True, kw_only=True)
class TableForms:
    """The form of a table of series.

    Attributes:
        steps: Steps that stand side by side.
        parts: Part of a moment -> its column, where no column holds moments.
        alone: Columns that number the rows; of a row a series, those that nearly every row has another cell of.
        others: Further columns that may say of what a row is.
        time: The column of moments, if one in 20 rows or more has that of another row; else None.
    """

    steps: SideBySide = _NO_STEPS
    parts: Mapping[str, str] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    time: str | None = None

    @property
    def wide(self) -> bool:
        """Whether a row is a series, and no reading."""
        return bool(self.steps.channels)

    @property
    def taken(self) -> frozenset[str]:
        """Columns that are neither channels nor attributes themselves."""
        return self.steps.columns | {*self.parts.values()} | (frozenset() if self.wide else {*self.alone})

    @classmethod
    def of(
        cls, table: TableSource, stored: Mapping[str, Storage], windows: Mapping[str, Any], described: Collection[str]
    ) -> TableForms:
        """Look at a table.

        Args:
            table: The table.
            stored: How its columns are stored.
            windows: What a draft has of ``series`` so far.
            described: Columns that a codebook describes, which nothing is guessed of.
        """
        first, time = first_cells(table), windows.get("time")
        left = {name: storage for name, storage in stored.items() if name not in described and name != time}
        parts = {} if time is not None else moment_parts(left)
        clock = "time_of_day" in windows or "datetime" in stored.values() or bool(parts) or {SERIES, STEP} <= {*stored}
        steps = _NO_STEPS if clock else side_by_side(left)
        names = [
            name
            for name, storage in left.items()
            if storage in ("integer", "text") and name not in (*steps.columns, *parts.values(), *windows.values())
        ]
        of_rows = differs if steps.channels else _names_rows
        alone = [name for name in names if of_rows(first[name]) or (not steps.channels and _is_row_number(first[name]))]
        say = [name for name in names if name not in alone and (left[name] == "text" or steps.channels)]
        doubled = time is not None and "time_of_day" not in windows and repeats(first[time])
        return cls(steps=steps, parts=parts, alone=tuple(alone), others=tuple(say), time=time if doubled else None)

    def told(self, file: str) -> list[str]:
        """Return what the owner decides first: of what series are, and what a moment is.

        Args:
            file: The data's name.
        """
        found = joining(self.parts, file) if self.parts else []
        for name in self.alone:
            word, shown = printable(unit_word(name)), printable(name)
            found.append(
                f"{shown} differs in nearly every row. As unit.id it would make each series a {word} of its own, and "
                f"only one series of a {word} would be hidden. Give all series of one {word} the same {shown}, or "
                "write unit: {name: series, id: none}."
                if self.wide
                else f"{shown} differs in nearly every row, and is left out: "
                "as unit.id it would make each reading a unit."
            )
        if self.time is not None:
            named = " or ".join(map(printable, self.others))
            which = f"If {named} says of what, name it" if named else "No column says of what: add one, and name it"
            found.append(f"Rows share a {printable(self.time)}, so they are of different things. {which} in unit.id.")
        if self.wide:
            shown = list_names([f"{steps[0]} … {steps[-1]}" for steps in self.steps.channels.values()])
            found.append(f"{shown} are read as the steps of a series, a row each. Rename them if they are none.")
        return found


NO_FORMS = TableForms()
"""That of arrays."""


def told_of_unit(unit: Unit, cells: pd.Series[Any], record: str) -> str | None:
    """Return what a unit protects where nearly every row has another id; None where ids repeat.

    Args:
        unit: It names the column.
        cells: Its first cells. Private.
        record: What a row is, such as ``series``.
    """
    if not differs(cells):
        return None
    name, shown = printable(unit.name), printable(unit.id or "")
    found = f"nearly every {record} has another {shown}, so each {name} is one {record}: if one {name} has several, "
    found += f"they are not hidden together. Give all of one {name} the same {shown}"
    if unit.max_records == 1:
        return found
    return f"{found}; if there is one of each, write max_records: 1, as {unit.max_records} cost noise for as many"
