"""A codebook: the public description of a data set's columns, in whatever form it came.

Forms of metadata (:mod:`doublure.drafting.metadata`) are read into one :class:`DataDescription`. Nothing in it comes
from cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from doublure.errors import SchemaError, printable
from doublure.schema.columns import AnyColumn, Column
from doublure.schema.columns.number import UnorderedBounds
from doublure.schema.fact_states import Frozen, KeyFault
from doublure.schema.kinds import KINDS
from doublure.schema.messages import finding
from doublure.schema.rule_files import with_files
from doublure.schema.schema import Schema

OMITTED = "omit"
"""The word for a column that is left out."""
SECTIONS = ("channels", "attributes")
"""The parts of a schema of series that hold columns: named ``channels.litres`` in a codebook."""
_KEY_OF = {"bounds": "lower"}
_FORM_OF = {"date": r"\d{4}-\d{2}-\d{2}", "time": r"\d{2}:\d{2}(:\d{2})?", "datetime": r"\d{4}-\d{2}-\d{2}T.*"}
"""Column type -> the form of its bounds."""


class _OneColumn(Frozen):
    columns: Mapping[str, AnyColumn]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The description of one column.

    Attributes:
        place: The file and the row, for messages.
        facts: The declared facts, as a schema's YAML would hold them; without ``type`` where none is given.
        description: The column's meaning, on one line; empty where none is given.
        notes: Further statements about the column that no fact can hold.
        omitted: Whether the column is left out of the schema.
        files: The facts that name a file, as they were written.
        decided: What was decided where the codebook says nothing, for a person to look at.
        asked: Facts that its words may mean, for a person to decide.
        because: The words, after "if"; empty without such facts.
    """

    place: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    notes: tuple[str, ...] = ()
    omitted: bool = False
    files: Mapping[str, Any] = field(default_factory=dict)
    decided: tuple[str, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""

    def column(self, name: str, type_: str | None) -> dict[str, Any]:
        """Return the described column, as a schema's YAML would hold it.

        Args:
            name: The column's name.
            type_: The type of its storage, which counts where the entry gives none; None where no data was read.

        Raises:
            SchemaError: The entry contradicts itself or has no type; the message names row and key.
        """
        self.model(name, type_)
        return self.plain(type_)

    def model(self, name: str, type_: str | None) -> Column:
        """Return the described column.

        Raises:
            SchemaError: As :meth:`column`.
        """
        plain = self.plain(type_)
        try:
            return _OneColumn.model_validate({"columns": {name: plain}}).columns[name]
        except ValidationError as error:
            raise self._misfit(error, plain) from None

    def plain(self, type_: str | None = None) -> dict[str, Any]:
        """Return the described column, unchecked.

        Raises:
            SchemaError: It has no type.
        """
        kind = self.facts.get("type") or ("category" if "values" in self.facts else self._stored(type_))
        if kind is None:
            remedy = "give the type, or draft with the data"
            raise SchemaError("is not given, and no data says it", field=f"{self.place}, type", remedy=remedy)
        meaning = {"description": self.description} if self.description else {}
        facts = {key: fact for key, fact in self.facts.items() if key != "type"}
        if kind == "datetime" and "type" not in self.facts and isinstance(ends := facts.get("bounds"), list):
            facts["bounds"] = [ends[0], last_second(ends[1])]
        return {"type": kind, **facts, **meaning}

    def _stored(self, type_: str | None) -> str | None:
        """Return the type of its storage; of text that has bounds, by its first cells, the type of the bounds."""
        ends = self.facts.get("bounds")
        if not isinstance(ends, list) or type_ not in (None, "category", "boolean", "date"):
            return type_
        if any(isinstance(end, str) for end in ends):
            form = next((each for each, shape in _FORM_OF.items() if re.fullmatch(shape, str(ends[0]))), type_)
            return form if type_ != "date" or form == "datetime" else type_
        return "real" if type_ in ("category", "boolean") else type_

    def _misfit(self, error: ValidationError, plain: Mapping[str, Any]) -> SchemaError:
        path, message, remedy = finding(error)
        given = {*self.facts, "description", "missing"}
        fault = _fault(error)
        told = [*path[2:], *([fault.key] if isinstance(fault, KeyFault) else [])]
        lacking = str(path[-1]) if error.errors()[0]["type"] == "missing" else "type"
        key = next((_KEY_OF.get(word, word) for word in told if word in given), _KEY_OF.get(lacking, lacking))
        if error.errors()[0]["type"] == "extra_forbidden":
            message, remedy = f"does not go with type {plain['type']}", "leave it empty, or change the type"
        elif key == "lower" and not isinstance(fault, UnorderedBounds) and self._reads_lower(plain):
            key = "upper"
        return SchemaError(message, field=f"{self.place}, {key}", remedy=remedy)

    @staticmethod
    def _reads_lower(plain: Mapping[str, Any]) -> bool:
        """Return whether the lower bound as both has no fault but its order, so that a fault is in the upper one."""
        if not isinstance(bounds := plain.get("bounds"), list) or not bounds:
            return False
        try:
            _OneColumn.model_validate({"columns": {"": {**plain, "bounds": bounds[:1] * 2}}})
        except ValidationError as error:
            return isinstance(_fault(error), UnorderedBounds)
        return True


def _fault(error: ValidationError) -> object:
    """Return what a validator of this package raised; None where pydantic's own found the fault."""
    return error.errors()[0].get("ctx", {}).get("error")


@dataclass(frozen=True, kw_only=True)
class DataDescription:
    """The description of a data set.

    Attributes:
        name: The file's name.
        form: The form of the metadata, in words.
        entries: Column -> entry, in file order; of related tables ``table.column``, of series ``channels.column``.
        whole: Keys at the top of a schema file; ``tables`` hold all but their columns.
        named: Of related tables, table -> columns that hold keys beside the parent's -> the tables of those keys.
        inferred: Whether programs write such files from data, so that a person has to check what is public.
        folder: The folder of the file, and of those that it names.
        interpreted: Whether its words are its keepers' own, so that a person has to check what was read of them.
        unread: The headings that were not read.
    """

    name: str
    form: str
    entries: Mapping[str, Entry]
    whole: Mapping[str, Any] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    inferred: bool = False
    folder: Path | None = None
    interpreted: bool = False
    unread: tuple[str, ...] = ()

    @property
    def kind(self) -> str | None:
        """The kind of data, if it is said."""
        found = self.whole.get("kind")
        return found if isinstance(found, str) and found in KINDS else None

    def entry(self, name: str, *parts: str) -> Entry | None:
        """Return a column's entry: as a column of one of some parts of the data, or by its name alone."""
        found = (entry_for(f"{part}.{name}", self.entries) for part in parts)
        return next((each for each in found if each is not None), None) or entry_for(name, self.entries)

    def at_the_top(self, *but: str) -> dict[str, Any]:
        """Return the keys at the top of a schema file, but for the kind and some others."""
        return {key: value for key, value in self.whole.items() if key not in ("kind", *but)}

    def of_table(self, name: str) -> DataDescription:
        """Return the description of one table: of several, the one called ``name``.

        Raises:
            SchemaError: Several are described, and none has this name.
        """
        tables = self.whole.get("tables")
        if not isinstance(tables, Mapping) or not tables:
            return self
        if name not in tables and len(tables) > 1:
            listed = ", ".join(map(printable, tables))
            remedy = f"name the data file after its table ({listed}), or draft the folder with --kind relational"
            raise SchemaError("describes several tables", field=self.name, remedy=remedy)
        own = name if name in tables else next(iter(tables))
        head = f"{own}."
        entries = {key.removeprefix(head): each for key, each in self.entries.items() if key.startswith(head)}
        return replace(self, entries=entries, whole=self.at_the_top("tables", "unit", "constraints"))

    def schema(self) -> Schema:
        """Return the schema that the description alone makes.

        Raises:
            SchemaError: It contradicts itself, or a column has no type.
        """
        kind = self.kind or "table"
        plain: dict[str, Any] = {"doublure": 1, "kind": kind, **self.at_the_top()}
        plain["tables"] = {name: dict(each) for name, each in plain.get("tables", {}).items()}
        for name, entry in self.entries.items():
            if entry.omitted:
                continue
            place, own = self._place(plain, kind, name)
            place[own] = entry.plain() if kind in SECTIONS_OF else entry.column(own, None)
        if not plain["tables"]:
            del plain["tables"]
        return Schema.from_plain(plain, self.name)

    def _place(self, plain: dict[str, Any], kind: str, name: str) -> tuple[dict[str, Any], str]:
        """Return the part of a schema that holds a column, and its name there."""
        if kind == "table":
            return plain.setdefault("columns", {}), name
        parts: dict[str, Any] = plain["tables"] if kind == "relational" else dict.fromkeys(SECTIONS_OF.get(kind, ()))
        part = max((each for each in parts if name.startswith(f"{each}.")), key=len, default=None)
        if part is None:
            remedy = f"begin its name with one of: {', '.join(f'{each}.' for each in parts)}"
            raise SchemaError("belongs to no part of the data", field=self.entries[name].place, remedy=remedy)
        place = parts[part].setdefault("columns", {}) if kind == "relational" else plain.setdefault(part, {})
        return place, name.removeprefix(f"{part}.")


def last_second(day: Any) -> Any:
    """Return the last second of a day in ISO 8601; anything else as it is."""
    return f"{day}T23:59:59" if isinstance(day, str) and re.fullmatch(_FORM_OF["date"], day) else day


SECTIONS_OF: Mapping[str, tuple[str, ...]] = {"series": SECTIONS}
"""Kind -> the parts of its schema that hold columns with keys of their own."""


def entry_for(name: str, entries: Mapping[str, Entry]) -> Entry | None:
    """Return a column's entry: its own, or else the pattern that says most of its name; of two, the first.

    What is meant by ``PAY_*`` beside ``PAY_AMT*`` must not hang on which stands first.

    Example:
        >>> bills = Entry(place="codes.csv row 2", facts={}, description="")
        >>> entry_for("BILL_AMT3", {"BILL_AMT*": bills}) is bills
        True
    """
    if name in entries:
        return entries[name]
    fitting = [pattern for pattern in entries if "*" in pattern and fits_pattern(name, pattern)]
    return entries[max(fitting, key=lambda pattern: len(pattern.replace("*", "")))] if fitting else None


def fits_pattern(name: str, pattern: str) -> bool:
    """Whether a name is what a pattern says; only ``*`` is special."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None


def facts_with_files(
    facts: Mapping[str, Any], folder: Path, place: str, name: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return facts with the content of the files that they name, and those facts as they were written.

    Args:
        facts: As a schema's YAML would hold them.
        folder: Where the codebook lies, and the files beside it.
        place: The file and the row, for messages.
        name: The column, as a file that it is looked up in names it.

    Raises:
        SchemaError: A file is not there, or lists nothing.
    """
    try:
        found: Any = with_files({"columns": {name: dict(facts)}}, folder)
    except SchemaError as error:
        key = (error.field or "").rpartition(".")[2]
        raise SchemaError(error.message, field=f"{place}, {key}", remedy=error.remedy) from None
    read: dict[str, Any] = found["columns"][name]
    return read, {key: fact for key, fact in facts.items() if read[key] is not fact}
