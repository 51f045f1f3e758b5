"""Checks of a bundle's files against its card and its data dictionary.

======================  ================================================================================================
which files             those of the kind's forms, the dictionary, the page, descriptions for catalogues, noisy tables
how many records        as many as the card says, in each file
forms                   CSV, Parquet and NPZ of one table hold the same cells
cells                   of the column's type, within its list or bounds, with its decimals, missing where one may be
keys                    numbered through from 1; a foreign key names a row of its parent, at most ``max_children`` times
files' metadata         Parquet and NPZ files carry the card's guarantee
a generator             its schema and plan belong together, and the plan has the accesses that the card lists
======================  ================================================================================================

Not checked: rules between columns, the cells and counts of noisy tables, whether the weights are those of the fit, and
bytes within a Parquet or NPZ file that no reader shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from doublure._version import __version__
from doublure.errors import InputError, counted, printable
from doublure.releasing.catalogue_names import NAMES
from doublure.releasing.cells import same
from doublure.releasing.kept_rules import RuleCheck
from doublure.releasing.reading import (
    FORMS,
    Batch,
    ContentMismatch,
    DescribedTable,
    batches,
    check_said,
    described_beside,
    described_tables,
    key_names,
    read_images,
)
from doublure.releasing.tables import FOLDER, table_columns, table_path
from doublure.run import published
from doublure.schema.columns import types
from doublure.schema.kinds import ByKind
from doublure.schema.series import SERIES, STEP
from doublure.support import files

PAGE, DICTIONARY = "card.html", "dictionary.json"
_UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)
"""Errors of a forged dictionary: of other types, or with numbers, keys or formulas that nothing can hold."""


class CheckedRules(NamedTuple):
    """The declared rules of a bundle with rows.

    Attributes:
        kept: The number of rules that every row keeps.
        unchecked: The number of those that the files do not say enough for.
    """

    kept: int = 0
    unchecked: int = 0


def check_contents(
    folder: Path, card: Mapping[str, Any], about: Mapping[str, str], *, vouched: bool = False
) -> tuple[dict[str, Any], CheckedRules | None]:
    """Compare a bundle's files with its card and its dictionary; of a registered kind the dictionary alone.

    Args:
        folder: The bundle, whose files are those that the card lists.
        card: The contents of ``card.json``.
        about: The metadata of files, without the version that made them.
        vouched: Whether a ledger or a known signature vouches for the card. Without, a generator's card of this
            version has this version's words of purposes.

    Returns:
        The data dictionary, of a generator that of its schema; the rules that rows keep, None where there are no rows.

    Raises:
        ContentMismatch: A file differs from them, or a row breaks a declared rule.
    """
    listed = {str(entry["path"]): entry.get("rows") for entry in card["files"]}
    if DICTIONARY not in listed:
        return _check_generator(folder, card, set(listed), vouched=vouched), None
    try:
        described = files.read_json(folder / DICTIONARY, "dictionary")
        if files.json_bytes(described) != (folder / DICTIONARY).read_bytes():
            raise ContentMismatch(
                "is not as doublure writes it: another reader may read something else in it", DICTIONARY
            )
        _check_dictionary(described, card)
        data = {name: rows for name, rows in listed.items() if name not in (PAGE, DICTIONARY, *NAMES)}
        noisy = {name: data.pop(name) for name in list(data) if name.startswith(f"{FOLDER}/")}
        _check_noisy_tables(folder, noisy, described, about)
        check = CHECKS.get(described["kind"])
        rules = None if check is None else check(folder, data, described, about)
    except (*_UNFIT, InputError):
        raise ContentMismatch("does not describe this bundle", DICTIONARY) from None
    return dict(described), rules


def _check_dictionary(described: Mapping[str, Any], card: Mapping[str, Any]) -> None:
    if described["watermark"] != card["watermark"]:
        raise ContentMismatch("carries another mark than the card", DICTIONARY)
    meant = {entry["name"]: entry["description"] for entry in described["columns"] if entry.get("description")}
    if card.get("columns") is not None and meant != card["columns"]:
        raise ContentMismatch("says something else of a column than the card", DICTIONARY)
    unknown = sorted({str(entry["type"]) for entry in described["columns"]} - {*types()})
    if unknown:
        raise ContentMismatch(
            f"names the type {printable(unknown[0])}, which is not registered where it is verified", DICTIONARY
        )


# -- tables, related tables, series ----------------------------------------------------------------------------------


def _check_tables(
    folder: Path, listed: Mapping[str, int | None], described: Mapping[str, Any], about: Mapping[str, str]
) -> CheckedRules:
    tables = described_tables(described)
    forms = [form for form in FORMS if f"{tables[0].name}{form}" in listed]
    if not forms or set(listed) != {f"{table.name}{form}" for table in tables for form in forms}:
        raise ContentMismatch("lists other files than a bundle of this kind holds", "card files")
    rules = RuleCheck(described, forms[0])
    related, rows, linked = described.get("related", {}), dict[str, int](), list[tuple[str, str, float]]()
    for table in sorted(tables, key=lambda table: _level(related, table.name)):
        named = {each.name: _numbered_by(related, table.name, each.name) for each in table.columns}
        numbered = _NumberingCheck(table, named, related.get(table.name, {}), rows, described.get("unit") or {})
        names = [f"{table.name}{form}" for form in forms]
        for found in _side_by_side(folder, names, table, about):
            _check_columns(found, table, names[0])
            numbered.check(found, names[0])
            rules.check(found, table, names[0])
        rows[table.name] = numbered.records
        linked += [(f"{names[0]} {own}", to, numbered.highest[own]) for own, to in numbered.links.items()]
        for name in names:
            if listed[name] != numbered.records:
                raise ContentMismatch(
                    f"holds {counted(numbered.records, 'record')}, and the card says {listed[name]}", name
                )
    for field, to, highest in linked:
        if highest > rows[to]:
            raise ContentMismatch("names a row that is not there", field)
    rules.finish("card files")
    return CheckedRules(rules.checked, rules.unchecked)


def _level(related: Mapping[str, Any], name: str) -> int:
    """Return how many tables are above one, by the dictionary; in a forged circle as many as there are tables."""
    for level in range(len(related)):
        above = related[name].get("parent")
        if above is None:
            return level
        name = above
    return len(related)


def _numbered_by(related: Mapping[str, Any], name: str, column: str) -> str:
    """Return the table whose rows a key numbers: its own, or of a foreign key the one that it leads to."""
    for _ in related:
        told = related[name]
        foreign = key_names(told.get("foreign_key", ()))
        if column not in foreign:
            break
        name, column = told["parent"], key_names(related[told["parent"]]["key"])[foreign.index(column)]
    return name


def _side_by_side(
    folder: Path, names: Sequence[str], table: DescribedTable, about: Mapping[str, str]
) -> Iterator[Batch]:
    """Yield the rows of the first form, once those of the others are equal."""
    streams = [batches(folder / name, table, about) for name in names]
    for found in itertools.zip_longest(*streams):
        first = found[0]
        for name, other in zip(names[1:], found[1:], strict=True):
            if first is None or other is None or not _agree(first, other):
                raise ContentMismatch(f"does not hold the cells of {names[0]}", name)
        yield first


def _agree(one: Batch, other: Batch) -> bool:
    return all(same(one[name], other[name]) for name in one.keys() & other.keys())


def _check_columns(found: Batch, table: DescribedTable, name: str) -> None:
    for told in table.columns:
        fault = None if told.name not in found else told.fault(found[told.name])
        if fault is not None:
            raise ContentMismatch(fault, f"{name} {told.name}")


class _NumberingCheck:
    """Checks that the keys of a table number its records, and counts them.

    Args:
        table: The table whose rows come, batch by batch.
        named: Column -> the table whose rows it numbers, if it is a key.
        told: The dictionary's entry about its keys.
        above: Earlier table -> its number of rows.
        unit: The dictionary's entry about units of several rows in one table; empty without them.

    Attributes:
        links: Column -> the table whose rows it names, beside the parent's.
        highest: Column -> the highest number of a row that it has named so far.
    """

    def __init__(
        self,
        table: DescribedTable,
        named: Mapping[str, str],
        told: Mapping[str, Any],
        above: Mapping[str, int],
        unit: Mapping[str, Any],
    ) -> None:
        self._of_units, self._most = {unit.get("id"), *unit.get("per_unit", ())}, unit.get("max_records")
        self.links = {own: str(link["to"]) for own, link in told.get("links", {}).items()}
        self.highest = dict.fromkeys(self.links, 0.0)
        self._keys = [each.name for each in table.columns if each.model.identifies and each.name not in self.links]
        self._series, self._above = table.series, above
        self._name, self._named, self._most_of = table.name, named, {told.get("parent"): told.get("max_children")}
        self._rows, self._last, self._step = 0, 0.0, -1.0
        self._owners: dict[str, tuple[float, int]] = {}
        self._units: dict[str, tuple[float, int]] = {}

    @property
    def records(self) -> int:
        """The number of records so far: rows, or series."""
        return self._rows if self._series is None else int(self._last)

    def check(self, batch: Batch, name: str) -> None:
        """Go on with the next rows.

        Raises:
            ContentMismatch: They are not numbered as doublure numbers them.
        """
        number = len(next(iter(batch.values())))
        counted = np.arange(self._rows + 1, self._rows + number + 1)
        for key in self._keys:
            if (above := self._named[key]) != self._name:
                self._check_foreign(key, batch[key], self._above[above], self._most_of.get(above), f"{name} {key}")
            elif key in self._of_units:
                self._check_repeated(key, batch[key], counted, f"{name} {key}")
            elif not np.array_equal(batch[key], counted):
                raise ContentMismatch("is no number of its row", f"{name} {key}")
        for own in self.links:
            named = batch[own][~np.isnan(batch[own])]
            if (named < 1).any():
                raise ContentMismatch("names a row that is not there", f"{name} {own}")
            self.highest[own] = float(named.max(initial=self.highest[own]))
        if self._series is not None:
            self._check_steps(batch, name)
        self._rows += number

    def _check_foreign(self, key: str, keys: Any, rows: int, most: int | None, field: str) -> None:
        last, before = self._owners.get(key, (0.0, 0))
        ordered = np.concatenate([[last], keys])
        if (np.diff(ordered) < 0).any() or keys[0] < 1 or keys[-1] > rows:
            raise ContentMismatch("names a row that its parent does not have, or is out of order", field)
        different, many = np.unique(keys, return_counts=True)
        many[0] += before if different[0] == last else 0
        if most is not None and many.max() > most:
            raise ContentMismatch(f"hangs more than {most} rows on one", field)
        self._owners[key] = float(different[-1]), int(many[-1])

    def _check_repeated(self, key: str, ids: Any, counted: Any, field: str) -> None:
        """Go on with ids of units, each the number of its first row."""
        last, many = self._units.get(key, (0.0, 0))
        before = np.concatenate([[last], ids[:-1]])
        begins = ids == counted
        if not (begins | ((ids == before) & (before > 0))).all():
            raise ContentMismatch("is neither the number of its row nor the id before", field)
        places = np.arange(1, len(ids) + 1)
        since = places - np.maximum.accumulate(np.where(begins, places, 1 - many))
        if self._most is not None and since.max() >= self._most:
            raise ContentMismatch(f"has more than {self._most} rows", field)
        self._units[key] = float(ids[-1]), int(since[-1]) + 1

    def _check_steps(self, batch: Batch, name: str) -> None:
        series = np.concatenate([[self._last], batch[SERIES]])
        steps = np.concatenate([[self._step], batch[STEP]])
        on = (np.diff(series) == 0) & (np.diff(steps) == 1)
        begins = (np.diff(series) == 1) & (steps[1:] == 0)
        if not (on | begins).all():
            raise ContentMismatch("does not number its series from 1 and their steps from 0", name)
        self._last, self._step = float(series[-1]), float(steps[-1])


# -- images ----------------------------------------------------------------------------------------------------------


def _check_images(
    folder: Path, listed: Mapping[str, int | None], described: Mapping[str, Any], about: Mapping[str, str]
) -> None:
    if set(listed) != {"data.npz"}:
        raise ContentMismatch("lists other files than a bundle of images holds", "card files")
    beside = described_beside(described)
    number, found = read_images(folder / "data.npz", described["images"], beside, about)
    for name, column in beside.items():
        if (fault := column.fault(found[name])) is not None:
            raise ContentMismatch(fault, f"data.npz {column.name}")
    if number != listed["data.npz"]:
        raise ContentMismatch(f"holds {counted(number, 'record')}, and the card says {listed['data.npz']}", "data.npz")


_Check = Callable[[Path, Mapping[str, "int | None"], Mapping[str, Any], Mapping[str, str]], "CheckedRules | None"]
CHECKS: ByKind[_Check] = ByKind(
    "check", table=_check_tables, relational=_check_tables, series=_check_tables, images=_check_images
)


# -- noisy tables ----------------------------------------------------------------------------------------------------


def _check_noisy_tables(
    folder: Path, listed: Mapping[str, int | None], described: Mapping[str, Any], about: Mapping[str, str]
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    told = {entry["path"]: entry["cells"] for entry in described.get("tables", {}).get("files", ())}
    if told != dict(listed):
        raise ContentMismatch("lists other noisy tables than the card", DICTIONARY)
    for name, rows in listed.items():
        try:
            with pq.ParquetFile(folder / name) as file:
                said = {key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()}
                names, number = file.schema_arrow.names, file.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise ContentMismatch("cannot be read", name) from None
        if not any(
            names == table_columns(size, described) and name == table_path(size) for size in range(1, len(names))
        ):
            raise ContentMismatch("has other columns than noisy tables have", name)
        if number != rows:
            raise ContentMismatch(f"holds {counted(number, 'cell')}, and the card says {rows}", name)
        check_said(said, about, name)


# -- a generator -----------------------------------------------------------------------------------------------------


def _check_generator(folder: Path, card: Mapping[str, Any], listed: set[str], *, vouched: bool) -> dict[str, Any]:
    from doublure.releasing.dictionary import dictionary

    if listed - {PAGE} != set(published.FILES):
        raise ContentMismatch("lists other files than a bundle or a generator holds", "card files")
    try:
        schema, touches, own = published.documents(folder)
    except (InputError, KeyError, ValueError, TypeError) as error:
        raise ContentMismatch(getattr(error, "message", "does not hold together"), published.FILES[0]) from None
    if touches != card.get("touches"):
        raise ContentMismatch("was made by another plan than the card's", published.FILES[0])
    if touches != own and not vouched and card.get("doublure_version") == __version__:
        raise ContentMismatch(f"words its accesses otherwise than doublure {__version__} does", published.FILES[0])
    return dictionary(schema)
