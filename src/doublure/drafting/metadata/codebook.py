"""The codebook in CSV or in a workbook's sheet, which says all that a schema says.

::

    column,type,values,lower,upper,missing,description
    age,integer,,17,90,false,Age in years
    workclass,category,Private|Self-employed|Never-worked,,,?,Class of worker
    BILL_AMT*,integer,,-1000000,1000000,false,Bill of one month
    notes,omit,,,,,Free text
    ,unit,"{name: patient, id: nr}",,,,
    ,rule,"{at_most: [born, admitted]}",,,,

A ``*`` stands for any text: one row describes columns of one kind. Further keys are those of a schema's column.
Headings in other words are read too, as far as they are certain (:mod:`doublure.drafting.metadata.own_words`).
A row without a column says something of the whole table: its type is a key at the top of a schema file, or ``rule``.
A cell that is a list, a mapping or a text of YAML is read as that: ``{learn: 0.05}``, ``["1"]``, ``{file: a.txt}``.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from doublure.data.splits import split_off
from doublure.data.tables.containers.registry import find_container
from doublure.drafting.codebook import OMITTED, SECTIONS, DataDescription, Entry, facts_with_files
from doublure.drafting.metadata.form import MetadataForm, csv_rows, line, read_header, read_text
from doublure.drafting.metadata.own_words import asked_missing, described, headings, with_levels
from doublure.drafting.metadata.ranges import Unclear, run
from doublure.errors import DataError, DoublureError, InputError, SchemaError, counted, escaped, printable
from doublure.schema.columns import MOST_VALUES, models, type_named, types
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.rule_files import with_files
from doublure.schema.schema import MODELS, Schema
from doublure.schema.series_attributes import Attribute
from doublure.support import yaml12 as yaml_text

KEYS = ("column", "type", "values", "lower", "upper", "missing", "description")
RULE = "rule"
_WHAT = "a codebook in CSV"
_ORDER = ("other", "step", "precision", "scale", "spikes", "zero_inflated", "timezone", "numbers_in", "roles")
"""The further keys that stand first."""
_OF_COLUMNS = ("columns", *SECTIONS)
_FACTS = ("values", "bounds", "missing")
"""The keys whose empty cells say undeclared."""
_WHOLE = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")
_PAIRS = {"written": ("true", "false")}
"""Keys whose cells give one text for each of some words."""
_MAPPED = frozenset({"spellings"})
"""Keys whose cells give a text for each text: ``Statutory = statutory | STAT = statutory``."""
_SAYING = ("values", "allowed", "codes")
"""The cells of a row of the whole that hold what it says; the later ones are those of headings in other words."""
_FORMS: Mapping[str, type] = {"[": list, "{": dict, '"': str}
"""First character of a cell in YAML -> what it holds."""
_LONGEST_FACTS, _SHORTEST_LIST = 110, 40
_EXACT, _GROUPED = 1e15, 1e4
"""Above the first a float may not be exact; below the second no comma is written, as a year has none."""
_FIRST_DAY, _MIDNIGHT = "1900-01-01", "0:00:00"
"""The first day of a workbook, and what its cell is read as: in a row with another day it is that day."""
_TRUTHS = {"true": "yes", "false": "no"}
"""Characters of a column's facts in a line."""
_EXAMPLES = {
    "values": "separate values by |, write whole numbers from -2 to 8 as -2..8, and end a single value with |",
    "missing": "write false, true, or the texts that mean missing, separated by |, where nothing is an empty cell",
}


def further() -> tuple[str, ...]:
    """Return the keys beside :data:`KEYS`: all that any column of a schema may say, registered types included."""
    found = dict.fromkeys(_ORDER)
    for model in _column_models():
        found.update(dict.fromkeys(_keys(model)))
    return tuple(key for key in found if key not in KEYS)


def _keys(model: type[BaseModel]) -> dict[str, Any]:
    """Return what a column of a type may say: key, as a file has it -> what it holds."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def keys_of_type(name: str) -> dict[str, str]:
    """Return the keys that a column of a type may have in a schema file, and what each means, where that is said.

    Example:
        >>> keys_of_type("real")["precision"]
        'decimals'
    """
    return dict(_meanings(type_named(name)))


@lru_cache
def _meanings(model: type[BaseModel]) -> Mapping[str, str]:
    return {each.alias or key: each.description or "" for key, each in model.model_fields.items()}


def _column_models() -> Iterator[type[BaseModel]]:
    yield from models()
    yield from get_args(get_args(Attribute)[0])


def _keys_where(holds: Callable[[Any], bool]) -> frozenset[str]:
    """Return the keys that hold one thing in each column type that has them."""
    return _keys_of_models(tuple(_column_models()), holds)


@lru_cache
def _keys_of_models(models: tuple[type[BaseModel], ...], holds: Callable[[Any], bool]) -> frozenset[str]:
    fields = [each for model in models for each in _keys(model).items()]
    others = {key for key, annotation in fields if not holds(annotation)}
    return frozenset(key for key, _ in fields if key not in others)


def _is_list(annotation: Any) -> bool:
    """Return whether a key holds a list, or a list or nothing."""
    if get_origin(annotation) is Annotated:
        return _is_list(get_args(annotation)[0])
    parts = get_args(annotation)
    return get_origin(annotation) is tuple or (
        len(parts) == 2 and type(None) in parts and any(_is_list(each) for each in parts)
    )


def _is_text(annotation: Any) -> bool:
    """Return whether a key holds a text, or a text or nothing."""
    if get_origin(annotation) is Annotated:
        return _is_text(get_args(annotation)[0])
    parts = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is Literal:
        return all(isinstance(each, str) for each in parts)
    return annotation is str or (
        bool(parts) and get_origin(annotation) not in (tuple, Mapping) and all(map(_is_text, parts))
    )


def whole_keys() -> tuple[str, ...]:
    """Return the types of rows that say something of the whole: keys at the top of a schema file, and ``rule``."""
    found = dict.fromkeys(key for model, _ in MODELS.values() for key in model.model_fields)
    return (*(key for key in found if key not in ("doublure", "constraints", *_OF_COLUMNS)), "defaults", RULE)


# -- reading -----------------------------------------------------------------------------------------------------------


def read(path: Path) -> DataDescription:
    """Read a codebook.

    Cells that are left empty declare nothing. The delimiter may be ``, ; tab |`` (but ``|`` separates values).

    Raises:
        InputError: There is no such file, or it is no text.
        SchemaError: A row is malformed; the message names row and key.
    """
    rows = _rows(path)
    written = next(rows, [])
    header = [cell.strip().lower() for cell in written]
    own_words = headings(written)
    if (
        own_words is not None
        and "column" in header
        and not any(says and key not in (*KEYS, *further()) for says, key in zip(own_words, header, strict=True))
    ):
        own_words = None
    keys: dict[int, str] = {}
    if own_words is None:
        header = _taken(header, path.name)
    else:
        keys = {place: key for place, key in enumerate(header) if own_words[place] is None and key in further()}
        header = [says or "" for says in own_words]
    unread = [
        line(cell)
        for place, (cell, says) in enumerate(zip(written, header if own_words is None else own_words, strict=True))
        if not says and place not in keys and cell.strip()
    ]
    entries: dict[str, Entry] = {}
    whole: dict[str, Any] = {}
    for number, row in enumerate(rows, start=2):
        if not any(cell.strip() for cell in row):
            continue
        place = f"{path.name} row {number}"
        if len(row) != len(header):
            remedy = "put texts with a delimiter in double quotes"
            raise SchemaError(
                f"has {counted(len(row), 'field')} and the header {len(header)}", field=place, remedy=remedy
            )
        cells = dict(zip(header, (cell.strip() for cell in row), strict=True))
        name = cells["column"]
        if not name and cells.get("type", "").lower() in whole_keys():
            _add_to(whole, cells, place)
            continue
        if not name or name in entries:
            message = "names a column that an earlier row describes" if name else "is empty"
            raise SchemaError(message, field=f"{place}, column", remedy="give every column one row")
        entries[name] = (
            _entry(cells, place, path.parent)
            if own_words is None
            else described(
                name,
                zip(own_words, row, strict=True),
                place,
                path.parent,
                _yaml,
                read_facts({key: row[at].strip() for at, key in keys.items() if row[at].strip()}, place),
            )
        )
    whole = dict(with_files(whole, path.parent))  # type: ignore[call-overload]  # a mapping, as it was
    return DataDescription(
        name=path.name,
        form="a codebook",
        entries=entries,
        whole=whole,
        folder=path.parent,
        interpreted=own_words is not None,
        unread=tuple(unread),
    )


def words_of(path: Path, column: str) -> tuple[str, ...]:
    """Return all that the rows of a codebook say that have a column's name in a cell; nothing where it is no table.

    Args:
        path: The codebook, of whatever form.
        column: The name.
    """
    try:
        rows = [[cell.strip() for cell in row] for row in _rows(path)]
    except DoublureError:
        return ()
    return tuple(cell for row in rows if column in row for cell in row if cell)


def _rows(path: Path) -> Iterator[list[str]]:
    """Yield the header and the rows of a CSV file, or of a sheet of a workbook."""
    container = find_container(split_off(path)[0])
    if container is None or not container.sheets:
        yield from csv_rows(read_text(path, _WHAT), path.name)
        return
    if not split_off(path)[0].is_file():
        raise InputError("there is no such file", field=path, remedy=f"give the path of {_WHAT}")
    try:
        sheet: Any = container.opener(path.name)(path, None)
        yield (header := list(sheet.columns))
        for row in sheet.rows(header):
            dated = any(isinstance(cell, datetime.date) for cell in row.cells)
            cells = map(_cell_text, row.cells)
            yield [_FIRST_DAY if dated and cell == _MIDNIGHT else cell for cell in cells]
    except DataError as error:
        raise SchemaError(error.message, field=error.field, remedy=error.remedy) from None


def _cell_text(cell: object) -> str:
    """Return a cell of a sheet as a CSV file would hold it."""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, (datetime.datetime, datetime.date)):
        return cell.isoformat()
    return "" if cell is None else str(cell)


def _add_to(whole: dict[str, Any], cells: Mapping[str, str], place: str) -> None:
    """Add what a row says of the whole."""
    key = cells["type"].lower()
    said = {name: cell for name, cell in cells.items() if cell and name not in ("", "type", "description")}
    values = next((said.pop(name) for name in _SAYING if name in said), "")
    if said:
        remedy = "leave it empty, or name the column"
        raise SchemaError("goes with a column", field=f"{place}, {next(iter(said))}", remedy=remedy)
    value = _scalar(values)
    if key == RULE:
        whole.setdefault("constraints", []).append(value)
    elif key in whole:
        raise SchemaError("says what an earlier row says", field=f"{place}, type", remedy="keep one row")
    else:
        whole[key] = value


def _scalar(text: str) -> Any:
    """Return a cell as a schema file would read it; one that is no YAML as it stands."""
    try:
        return yaml_text.parse(text, "a cell")
    except SchemaError:
        return text


def _entry(cells: Mapping[str, str], place: str, folder: Path) -> Entry:
    description = _description(cells.get("description", ""))
    if cells.get("type", "").lower() == OMITTED:
        return Entry(place=place, description=description, omitted=True)
    facts, files = facts_with_files(read_facts(cells, place), folder, place, cells["column"])
    facts, decided, notes = with_levels(facts, cells["column"])
    asked, because = asked_missing(description, facts)
    return Entry(
        place=place,
        facts=facts,
        description=description,
        notes=notes,
        files=files,
        decided=decided,
        asked=asked,
        because=because,
    )


def _taken(header: list[str], name: str) -> list[str]:
    """Return the keys of a header; an empty text for a heading that is none, or that an earlier one says already."""
    if "column" not in header:
        remedy = (
            f"begin with {','.join(KEYS)}, or with headings such as Variable, Meaning, Allowed values, May be empty"
        )
        raise SchemaError("the header has no key column", field=f"{name} row 1", remedy=remedy)
    known = (*KEYS, *further())
    if not {*header} & {*known} - {"column"} and len(header) > 1:
        other = next(key for key in header if key != "column")
        remedy = f"begin with {','.join(KEYS)}; there may also be {', '.join(further())}"
        raise SchemaError("is not a key of a codebook", field=f"{name} row 1, {other}", remedy=remedy)
    return [key if key in known and key not in header[:at] else "" for at, key in enumerate(header)]


def read_facts(cells: Mapping[str, str], place: str) -> dict[str, Any]:
    """Return the facts of a row, as a schema's YAML would hold them.

    Args:
        cells: Key -> cell.
        place: The file and the row, for messages.

    Raises:
        SchemaError: A cell cannot be read; the message names its key.
    """
    facts: dict[str, Any] = {}
    if type_ := cells.get("type", "").lower():
        if type_ not in types():
            known = ", ".join((*types(), OMITTED))
            raise SchemaError("is no type", field=f"{place}, type", remedy=f"give one of {known}")
        facts["type"] = type_
    if values := cells.get("values", ""):
        facts["values"] = _values(values, place)
    lower, upper = cells.get("lower", ""), cells.get("upper", "")
    bought = _bought(lower, upper)
    if bool(lower) != bool(upper) and bought is None:
        key = "upper" if lower else "lower"
        raise SchemaError("is empty and its fellow is not", field=f"{place}, {key}", remedy="give both or neither")
    if lower or upper:
        if cells.get("bounds"):
            raise SchemaError("says what lower and upper say", field=f"{place}, bounds", remedy="leave it empty")
        facts["bounds"] = [_bound(lower), _bound(upper)] if bought is None else bought
    if missing := cells.get("missing", ""):
        facts["missing"] = _missing(missing)
    read = _further_reader()
    return facts | {key: read(key, cells[key]) for key in further() if cells.get(key)}


def _bought(lower: str, upper: str) -> dict[str, Any] | None:
    """Return what both cells of bounds say of buying them, where one says it and the other nothing else."""
    said = lower or upper
    found = _yaml(said)
    return found if isinstance(found, dict) and {lower, upper} <= {said, ""} else None


def _yaml(text: str) -> Any:
    """Return a cell that is a list, a mapping or a text of YAML as that; None for any other."""
    if (wanted := _FORMS.get(text[:1])) is None:
        return None
    found = _scalar(text)
    return found if isinstance(found, wanted) and (wanted is not str or found != text) else None


def _missing(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    found = _yaml(text)
    if found is not None or text == UNDECLARED:
        return found or text
    texts = list(map(str.strip, text.split("|")))
    named = list(filter(None, texts))
    empty = [""] if len(named) < len(texts) else []  # an empty cell beside the texts, which is a kind of its own
    return [*empty, *named] if named else True


def _further_reader() -> Callable[[str, str], Any]:
    """Return what reads a cell as a schema's YAML would hold it: the column's model judges whether it fits."""
    lists, texts = _keys_where(_is_list), _keys_where(_is_text)

    def read(key: str, text: str) -> Any:
        found = _yaml(text) if key not in texts or text.startswith('"') else None
        if found is not None:
            return found
        if key in texts:
            return text
        if key in _MAPPED:
            return dict(_mapped(text, key))
        if key in _PAIRS:
            return dict(zip(_PAIRS[key], map(str.strip, text.split("|")), strict=False))
        if key in lists:
            return [_bound(each.strip()) for each in text.split("|")]
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        return _bound(text)

    return read


def _mapped(text: str, key: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a cell such as ``a = b | c = d``, or with one a line.

    Raises:
        SchemaError: One is no pair.
    """
    for part in filter(None, map(str.strip, re.split(r"[|\r\n]+", text))):
        left, mark, right = (each.strip() for each in part.partition("="))
        if not (left and mark and right):
            raise SchemaError("has a part that is no pair", field=key, remedy="write TEXT = VALUE, separated by |")
        yield left, right


def _values(text: str, place: str) -> Any:
    """Return the values in order: whole numbers if all are, so that 1 does not come back as text.

    One value alone is refused, but for one with a ``|`` behind it: it is mostly a list in another spelling.
    """
    if (found := _yaml(text)) is not None or text == UNDECLARED:
        return text if found is None else found
    single = text.endswith("|") and text.count("|") == 1
    values: list[str] = []
    for value in (each.strip() for each in text.removesuffix("|" if single else "").split("|")):
        try:
            values += run(value) or [value]
        except Unclear as unclear:
            remedy = f"write it as low..high, with at most {MOST_VALUES} values"
            raise SchemaError(str(unclear), field=f"{place}, values", remedy=remedy) from None
    if not all(values):
        raise SchemaError("has an empty value", field=f"{place}, values", remedy=_EXAMPLES["values"])
    if len(values) == 1 and not single:
        raise SchemaError("is one value alone", field=f"{place}, values", remedy=_EXAMPLES["values"])
    return [int(value) for value in values] if all(_WHOLE.fullmatch(value) for value in values) else values


def _bound(text: str) -> int | float | str:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _description(text: str) -> str:
    """Return a description on one line, without what could move a cursor."""
    found = _yaml(text) if text.startswith('"') else None
    text = text if found is None else str(found)
    return text if escaped(text) == text else line(text)


# -- writing -----------------------------------------------------------------------------------------------------------


def write(schema: Schema) -> str:
    """Return a schema as a codebook: :func:`read` and :meth:`DataDescription.schema` make the same schema of it."""
    plain = schema.to_plain()
    rows = [_of_the_whole(key, value) for key, value in _whole(plain)]
    rows += [codebook_cells(name, facts) for name, facts in _columns(plain)]
    used = [key for key in further() if any(key in row for row in rows)]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*KEYS, *used], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _whole(plain: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in plain.items():
        if key == "constraints":
            yield from ((RULE, rule) for rule in value)
        elif key == "tables":
            yield key, {name: {own: each[own] for own in each if own != "columns"} for name, each in value.items()}
        elif key not in ("doublure", *_OF_COLUMNS):
            yield key, value


def _columns(plain: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from plain.get("columns", {}).items()
    for section in SECTIONS:
        yield from ((f"{section}.{name}", facts) for name, facts in plain.get(section, {}).items())
    for table, told in plain.get("tables", {}).items():
        yield from ((f"{table}.{name}", facts) for name, facts in told["columns"].items())


def _of_the_whole(key: str, value: Any) -> dict[str, str]:
    return {"type": key, "values": yaml_text.inline(value)}


def codebook_cells(name: str, facts: Mapping[str, Any]) -> dict[str, str]:
    """Return a column's row: each fact in the plain spelling that reads back to it, else as YAML."""
    row = {"column": name, "type": str(facts["type"])}
    bounds = facts.get("bounds")
    ends = [_shown(end).strip() for end in bounds] if isinstance(bounds, list) else []
    if len(ends) == 2 and all(ends) and _same(list(map(_bound, ends)), bounds):
        row |= {"lower": ends[0], "upper": ends[1]}
        facts = {key: fact for key, fact in facts.items() if key != "bounds"}
    read = _further_reader()
    for key, fact in facts.items():
        if key != "type" and (fact != UNDECLARED or key not in _FACTS):
            row[key] = next(text for text in _spellings(fact) if _same(_read(key, text, read), fact))
    return row


def facts_in_words(name: str, facts: Mapping[str, Any]) -> str:
    """Return facts in a line, as a codebook has them, without type, role and description."""
    cells = codebook_cells(
        name, {key: fact for key, fact in facts.items() if key not in ("description", "roles", "dtype")}
    )
    labels = facts.get("value_labels")
    labels = labels if isinstance(labels, Mapping) else {}
    said, long = [], ""
    if "lower" in cells:
        said.append(" to ".join(map(_figure, facts["bounds"])))
    for key, cell in cells.items():
        if key in ("column", "type", "lower", "upper", "value_labels") or cell == UNDECLARED:
            continue
        price = facts[key]["learn"] if isinstance(facts.get(key), Mapping) and "learn" in facts[key] else None
        if price is not None:
            said.append(f"{key}: bought for ε = {price:g}")
        elif key == "values":
            long = " | ".join(" ".join(filter(None, (each, labels.get(each)))) for each in cell.strip("|").split("|"))
            said.append(long)
        elif key == "missing":
            texts = f"missing: {f'empty{cell}' if cell.startswith('|') else cell}".replace("|", " | ")
            said.append({"true": "may be missing", "false": "never missing"}.get(cell, texts))
        elif key == "written" and isinstance(facts[key], Mapping):
            said.append(" | ".join(f"{word} ({_TRUTHS[truth]})" for truth, word in facts[key].items()))
        else:
            said.append(f"{key}: {cell}")
    over = len(" · ".join(said)) - _LONGEST_FACTS
    if over > 0 and long:  # a list gives way to what else is said, such as that cells may be missing
        said[said.index(long)] = long[: max(_SHORTEST_LIST, len(long) - over - 1)] + "…"
    told = " · ".join(said)
    return told if len(told) <= _LONGEST_FACTS else told[: _LONGEST_FACTS - 1] + "…"


def _figure(end: Any) -> str:
    """Return an end of bounds as people write it: 1,000,000 and not 1000000.0."""
    if isinstance(end, bool) or not isinstance(end, (int, float)):
        return str(end)
    whole = float(end).is_integer() and abs(end) < _EXACT
    return (f"{int(end):,}" if abs(end) >= _GROUPED else f"{int(end)}") if whole else f"{end:,}"


def _spellings(fact: Any) -> Iterator[str]:
    if isinstance(fact, list):
        yield (joined := "|".join(map(_shown, fact)))
        yield f"{joined}|"
    else:
        yield "|".join(map(_shown, fact.values())) if isinstance(fact, dict) else _shown(fact)
        if isinstance(fact, dict):
            yield " | ".join(f"{_shown(text)} = {_shown(each)}" for text, each in fact.items())
    yield json.dumps(fact, ensure_ascii=False) if isinstance(fact, str) else yaml_text.inline(fact)


def _shown(value: Any) -> str:
    """Return a value without YAML's quotes."""
    return value if isinstance(value, str) else yaml_text.inline(value)


def _read(key: str, text: str, further: Callable[[str, str], Any]) -> Any:
    """Return a cell as it is read; None for one that is refused, or that a CSV file would not keep."""
    if text != text.strip() or not text:
        return None
    try:
        if key == "values":
            return _values(text, printable(key))
        own: Callable[[str], Any] | None = {"missing": _missing, "description": _description}.get(key)
        return further(key, text) if own is None else own(text)
    except SchemaError:
        return None


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, 1 and 1.0 and true apart."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _begins_like_one(path: Path) -> bool:
    container = find_container(split_off(path)[0])
    if container is not None and container.sheets:
        return True  # no other form is a workbook
    header = read_header(path)
    return "column" in [cell.lower() for cell in header]


FORM = MetadataForm(title="a codebook", read=read, recognises=_begins_like_one)
