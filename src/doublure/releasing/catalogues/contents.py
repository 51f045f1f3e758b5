"""The public contents that descriptions for catalogues may use: the card and the data dictionary."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from doublure.access import COVERED
from doublure.data.series.clock import clock_texts
from doublure.releasing.cells import DescribedColumn
from doublure.releasing.reading import DescribedTable, described_tables
from doublure.releasing.tables import FOLDER
from doublure.schema.kinds import KINDS
from doublure.schema.series import CLOCK, SERIES, STEP, Windows

ROWS = ("csv", "parquet", "feather", "xlsx", "jsonl", "dta", "sav")
"""The endings of files of rows."""
MEDIA: Mapping[str, str] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "feather": "application/vnd.apache.arrow.file",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jsonl": "application/jsonl",
    "dta": "application/x-stata-dta",
    "sav": "application/x-spss-sav",
    "npz": "application/zip",
    "json": "application/json",
}


NUMBERED = {SERIES: "the number of the series", STEP: "the step within it, from 0", CLOCK: "the time of day"}
"""Columns that a release of series has beside those of the schema."""
_FOUND_AT = {
    "cc0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    **{
        f"cc-{terms}-{version}": f"https://creativecommons.org/licenses/{terms}/{version}/"
        for terms in ("by", "by-sa", "by-nc", "by-nd", "by-nc-sa", "by-nc-nd")
        for version in ("3.0", "4.0")
    },
    "odbl": "https://opendatacommons.org/licenses/odbl/1-0/",
    "odc-by": "https://opendatacommons.org/licenses/by/1-0/",
    "pddl": "https://opendatacommons.org/licenses/pddl/1-0/",
    "mit": "https://opensource.org/license/mit",
    "apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
}
"""Licences by the names that catalogues know, and their addresses."""


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """A release, as far as catalogues describe it.

    Attributes:
        card: The contents of ``card.json``, without the ledger's record.
        described: The data dictionary.
        files: The entries of data files and the dictionary on the card.
    """

    card: Mapping[str, Any]
    described: Mapping[str, Any]
    files: Sequence[Mapping[str, Any]]

    @classmethod
    def from_release(
        cls, card: Mapping[str, Any], described: Mapping[str, Any], but: Collection[str]
    ) -> CatalogueEntry:
        """Take a card and a dictionary, as their files have them.

        Args:
            card: The contents of ``card.json``, now or later.
            described: The data dictionary.
            but: The files that are made of these, and cannot be described.
        """
        said, told = json.loads(json.dumps(card)), json.loads(json.dumps(described))
        listed = [entry for entry in said.pop("files") if entry["path"] not in but]
        said.pop("ledger", None)
        return cls(card=said, described=told, files=listed)

    @property
    def records(self) -> str:
        """The name of the records: rows, images or series."""
        return KINDS[self.described["kind"]].records

    @property
    def covered(self) -> bool:
        """Whether a guarantee covers the people in the data."""
        return self.card["guarantee"]["kind"] in COVERED

    @property
    def summary(self) -> str:
        """The mark and the guarantee, with the steward's description before them."""
        own = self.card.get("description")
        said = f"{self.card['watermark'].rstrip('.')}. Guarantee: {self.card['guarantee']['sentence']}"
        return f"{own} {said}" if own else said

    @property
    def keywords(self) -> list[str]:
        """The keywords."""
        return ["synthetic data", *(["differential privacy"] if self.covered else []), "doublure"]

    @property
    def licence(self) -> tuple[str, str | None, str] | None:
        """The licence: a name that catalogues know or ``other``, its address if known, and the steward's words."""
        words = self.card.get("licence")
        if not words:
            return None
        name = re.sub(r"[\s_]+", "-", words.strip().lower())
        return (name, _FOUND_AT[name], words) if name in _FOUND_AT else ("other", None, words)

    @property
    def data(self) -> list[Mapping[str, Any]]:
        """The entries of the files with records."""
        return [entry for entry in self.files if entry["rows"] is not None and not is_noisy(entry["path"])]

    @cached_property
    def tables(self) -> dict[str, DescribedTable]:
        """The tables of a release by the names of their files; none of records that lie in arrays alone."""
        written = {stem(entry["path"]) for entry in self.data if entry["path"].rpartition(".")[2] in ROWS}
        return {table.name: table for table in described_tables(self.described)} if written else {}

    @property
    def described_tables(self) -> list[DescribedTable]:
        """The tables of a release that have columns, and those that lie in arrays, such as labels beside images."""
        return [table for table in described_tables(self.described) if table.columns]

    def columns(self, table: DescribedTable) -> list[DescribedColumn]:
        """Return the columns that a table's files have, in order."""
        told = table.series
        days = told is not None and told.get("step") is not None and _are_days(told)
        return [column for column in table.columns if told is None or column.name != CLOCK or days]

    def meaning(self, table: DescribedTable, column: DescribedColumn) -> str | None:
        """Return a column's description, if there is one."""
        if table.series is not None and column.name in NUMBERED:
            ends = column.name == CLOCK and table.series.get("stamp") == "end"
            return NUMBERED[column.name] + (" at which a step ends" if ends else "")
        in_words = {} if table.series is None else table.series.get("columns", {})
        return self.told(table, column).get("description") or in_words.get(column.name)

    def column_type(self, table: DescribedTable, column: DescribedColumn) -> str:
        """Return the type of a column: of those that number series, number; of those that date them, their own."""
        stamps = {} if table.series is None else table.series.get("stamps", {})
        beside = dict.fromkeys((*NUMBERED, *stamps.get("of_series", ())), "number") if table.series is not None else {}
        beside |= {str(stamps["time"]): str(stamps["type"])} if "time" in stamps else {}
        beside |= {str(stamps["time_of_day"]): "time"} if "time_of_day" in stamps else {}
        return beside.get(column.name) or str(self.told(table, column).get("type", ""))

    def told(self, table: DescribedTable, column: DescribedColumn) -> Mapping[str, Any]:
        """Return a column's entry in the dictionary; nothing of one that numbers series."""
        entries = {str(entry["name"]): entry for entry in self.described["columns"]}
        found: Mapping[str, Any] = entries.get(f"{table.name}.{column.name}") or entries.get(column.name) or {}
        return found

    @property
    def text(self) -> Mapping[str, Any]:
        """The keys that say how CSV files are written, where that is not the usual way."""
        found: Mapping[str, Any] = self.described.get("text", {})
        return found

    def keys(self, table: str) -> Mapping[str, Any]:
        """Return the keys of a related table: ``key``, ``parent``, ``foreign_key``."""
        found: Mapping[str, Any] = self.described.get("related", {}).get(table, {})
        return found

    def named(self, table: str) -> dict[str, str]:
        """Return the columns of a related table that name rows beside the parent's, each with the table of these."""
        own = self.keys(table)
        return {**own.get("references", {}), **{name: link["to"] for name, link in own.get("links", {}).items()}}


def distinct_names(names: Iterable[str], clean: Callable[[str], str]) -> dict[str, str]:
    """Return a name in a format's own letters for each name; a number behind one that is taken.

    Args:
        names: The names.
        clean: Replaces letters that the format does not have.
    """
    found: dict[str, str] = {}
    for name in names:
        taken, number = clean(name), 2
        while taken in found.values():
            taken, number = f"{clean(name)}-{number}", number + 1
        found[name] = taken
    return found


def is_noisy(path: str) -> bool:
    """Return whether a file holds noisy tables of counts."""
    return path.startswith(f"{FOLDER}/")


def stem(path: str) -> str:
    """Return the name of the table that a file holds."""
    return path.rpartition(".")[0]


def _are_days(told: Mapping[str, Any]) -> bool:
    windows = Windows(time=CLOCK, step=told["step"], length=told["length"])
    return clock_texts(windows, told["length"]) is not None
