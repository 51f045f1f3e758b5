"""One-line messages about a faulty schema: the key, its allowed values, the remedy, and other faulty keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import ValidationError

from doublure.errors import SchemaError, printable
from doublure.schema.columns import MODELS, models, types
from doublure.schema.columns.fake import SUBJECTS
from doublure.schema.columns.patterns import EXAMPLE
from doublure.schema.rules.registry import MODELS as RULES
from doublure.support.guessing import nearest_name

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_RULES = [model.word for model in RULES]
_FORMS = {
    "bounds": "must be [lower, upper], {learn: epsilon} or undeclared",
    "missing": 'must be true, false, a list of texts such as ["?"], {learn: epsilon} or undeclared',
    "values": "must be a list of texts, numbers, true or false, {file: codes.csv}, {learn: epsilon} or undeclared",
    "shares": "must give every value its share, as in {a: 0.3, b: 0.7}, or be {learn: epsilon}",
    "roles": "must be a list of target, condition and weight, such as [target]",
    "units": "must be a whole number of at least 1, {learn: epsilon, magnitude: number} or undeclared",
    "unit": "must be {name: text, id: a column, null or none, max_records: a whole number, per_unit: [columns], "
    "order: a column}",
    "federated": "must be {max_silos: a whole number of at least 1, need: how many owners have to be ready}",
    "release": "must be {title, description, licence, citation, contact: texts, links: [https://…]}, or some of them",
    "max_silos": "must be a whole number of at least 1",
    "need": "must be a whole number of at least 1",
    "columns": "must give every column its description, as in age: {type: integer, bounds: [0, 120], missing: false}",
    "constraints": f"must be a list of rules: {', '.join(_RULES[:-1])} or {_RULES[-1]}",
    "tables": "must give every table its key or parent, and its columns, as docs/relational.md shows",
    "max_children": "must be a whole number from 1 to 1000, or undeclared",
    "foreign_key": "must be the name of a column",
    "key": "must be the name of one column: join several into one",
    "parent": "must be the name of the root",
    "tables.links": "must say what a column names, as in boss: {to: employees, match: {own: theirs}, acyclic: true}",
    "order": "must be the name of a column",
    "sum": "must be {total: table.column, of: table.column}",
    "doublure": "must be 1, the version of this file format",
    "kind": "must be table, images, series or relational",
    "images": "must be {shape: [height, width, channels], range: [lower, upper], on_mismatch: refuse or resize}",
    "shape": "must be [height, width, channels]: sides from 4 to 1024, and 1 channel (grey) or 3 (colour)",
    "range": "must be [lower, upper], such as [0, 255]",
    "crop": "must be [height, width] of what is cut out of the middle, such as [128, 128]",
    "series": "must be {time: a column, length: a number, step: 1h, timezone: UTC, gaps: missing, refuse or drop}",
    "series.time": "must be the name of a column, or left out",
    "series.source": "must be the name of a column, or left out",
    "series.step": "must be a whole number and s, min, h, d or w, such as 15min",
    "length": "must be a whole number of steps from 2 to 10000",
    "gaps": "must be missing, refuse or drop",
    "irregular": "must be refuse, mean, sum or last",
    "clock_changes": "must be fill or drop",
    "channels": "must give every channel its description, as in litres: {type: real, bounds: [0, 500], missing: true}",
    "attributes": "must give every attribute its description, as in place: {type: category, values: [a, b]}",
    "from_time": "must be weekday, weekend, month or hour",
    "label.missing": "must be false, or left out: a label is part of the record",
    "label": "must be {values: [a, b], roles: [target, condition]}, with shares if they are known",
    "other": "must be a text or a number",
    "levels": "must be a list of lengths of prefixes, such as [1, 3]",
    "parents": "must be a CSV file code,parent beside the schema, or the group above each code",
    "precision": "must be a number of decimals from 0 to 12",
    "step": "must be a whole number of at least 1 (seconds, for moments); for reals, a number above 0",
    "scale": "must be linear, log or symlog",
    "edges": "must be a list of numbers in ascending order, such as [0, 100, 1000]",
    "spikes": "must be a list of numbers, such as [0, 501]",
    "timezone": "must be an IANA name such as Europe/Paris",
    "date_format": "must be a form of dates such as DD-MM-YYYY or DD-MM-YYYY hh:mm",
    "format": "must be a form of numbers such as '$#,##0.00' or '0.0 %'",
    "written": "must be {true: a text, false: a text}, such as {true: Y, false: N}",
    "dtype": "must be a storage type by pandas' name, such as int32, str, category or datetime64[ns]",
    "quoting": "must be text or all, or left out",
    "line_end": "must be crlf, or left out",
    "header": "must be false where files have no line of names, or left out",
    "decimal": "must be one mark, such as ','",
    "thousands": "must be one mark, such as '.'",
    "encoding": "must be the name of an encoding, such as latin-1",
    "delimiter": "must be one character, such as ';'",
    "zero_inflated": "must be true or false",
    "as": f"must be {', '.join(SUBJECTS[:-1])} or {SUBJECTS[-1]}",
    "locale": "must be a locale of Faker, such as en_GB",
    "pattern": f"must be a text with places for digits, letters or hex, such as {EXAMPLE}",
    "who": "must be a word",
    "per": "must be unit or row",
    "value": "must be a text, a number, true or false",
    "from": "must be a CSV file beside the schema, a list of texts, or a text for each key",
    "by": "must be the name of a column",
}
_COLUMN_ORDER = "must be random, and goes with a pattern; or be left out"
_NO_TYPES = {
    **dict.fromkeys(
        ("text", "string", "str", "free_text", "freetext"),
        "list its values in a category; free text is never made: leave the column out, or write {type: constant}; for "
        "names and addresses, write {type: fake, as: person_name}",
    ),
    **dict.fromkeys(
        ("point", "geo", "coordinates", "location", "latitude", "longitude"),
        "a place is two columns: give both type: real, and join them by the rule {point: [LONGITUDE, LATITUDE]} under "
        "constraints",
    ),
    **dict.fromkeys(
        ("currency", "money", "percent", "percentage"),
        "write {type: real, precision: 2} with a format, such as '0.0 %'",
    ),
    **dict.fromkeys(("name", "person_name", "email", "phone", "address", "iban"), "write {type: fake, as: NAME}"),
}
"""Types that are looked for and do not exist -> the remedy."""
_LISTED = ("category", "ordinal", "boolean")
_TYPES: dict[str, Callable[[], tuple[str, ...]]] = {
    "columns": types,
    "channels": lambda: ("integer", "real"),
    "attributes": lambda: _LISTED,
}
_IN_TWO = (["unit"], ["release"], ["constraints"], ["images"], ["label"], ["series"])
_MOST_NAMED = 8
_SEE = "see docs/schema.md"
_KNOWN = (
    "misfit",
    "defaults",
    *_FORMS,
    *(field.alias or key for model in MODELS for key, field in model.model_fields.items()),
)


def one_line(error: ValidationError, data: object = None) -> SchemaError:
    """Return the findings as an error on one line: the first key and its remedy, and the other keys that are wrong.

    Args:
        error: The findings.
        data: What was read, where it is at hand: a rule is then named by its columns, too.
    """
    every = error.errors(include_url=False, include_input=False)
    first, message, remedy = _found(every[0])
    message = _of_rule(message, every[0]["loc"], data)
    others = list(dict.fromkeys(".".join(path) for path, _, _ in map(_found, every[1:]) if path and path != first))
    if others:
        listed = ", ".join(map(printable, others[:_MOST_NAMED]))
        more = f", and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        message += f" (see {listed}{more}, too)"
    return SchemaError(message, field=".".join(first) or "schema", remedy=remedy)


def _of_rule(message: str, location: Sequence[int | str], data: object) -> str:
    """Return a message about a rule with the columns that the rule names, as far as it can be read."""
    table, place = data, list(location)
    if place[:1] == ["tables"] and isinstance(table, Mapping) and isinstance(table.get("tables"), Mapping):
        table, place = table["tables"].get(place[1]), place[2:]
    if not isinstance(table, Mapping) or place[:1] != ["constraints"] or not isinstance(table.get("constraints"), list):
        return message
    columns = {name for key in ("columns", "channels") if isinstance(own := table.get(key), Mapping) for name in own}
    number = place[1] if len(place) > 1 else None
    rule = table["constraints"][number] if isinstance(number, int) and number < len(table["constraints"]) else None
    word = next((each for each in _RULES if isinstance(rule, Mapping) and each in rule), None)
    names = list(dict.fromkeys(each for each in _texts(rule) if each in columns))
    if word is None or not names:
        return message
    said = f"{word} of {', '.join(map(printable, names[:_MOST_NAMED]))}"
    return f"{said} {message.removeprefix(f'{word} ')}" if message.startswith(f"{word} ") else f"{message} ({said})"


def _texts(part: object) -> Iterator[str]:
    """Yield the names and texts in a part of a file."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, (Mapping, list, tuple)):
        for each in (*part, *(part.values() if isinstance(part, Mapping) else ())):
            yield from _texts(each)


def finding(error: ValidationError) -> tuple[tuple[str, ...], str, str]:
    """Return the first finding: the keys that lead to it, what is wrong, and the remedy."""
    return _found(error.errors(include_url=False, include_input=False)[0])


def _found(first: ErrorDetails) -> tuple[tuple[str, ...], str, str]:
    location, kind = first["loc"], str(first["type"])
    path = _path(location)
    key = _key(path)
    if kind == "value_error":
        path = path or tuple(filter(None, [getattr(first["ctx"]["error"], "field", None)]))
        head, _, remedy = str(first["msg"]).removeprefix("Value error, ").partition("; ")
        return path, head, remedy or _SEE
    if kind == "extra_forbidden":
        place = path if path[-1:] == location[-1:] else (*path, str(location[-1]))
        if place[-1] in _KNOWN:
            return place, "is not a key that goes here", f"remove it, or {_SEE}"
        near = nearest_name(place[-1], _KNOWN)
        return place, "is not a key that is known here", f"did you mean {near}?" if near else f"remove it, or {_SEE}"
    if kind == "invalid_key" or "[key]" in location:
        return path, "has a key that is no text", "put it in quotes"
    if kind.startswith("union_tag") and key in _TYPES:
        what = "has no type" if kind == "union_tag_not_found" else "has a type that is not known here"
        known = _TYPES[key]()
        tag = str(first.get("ctx", {}).get("tag", ""))
        if key == "columns" and tag in _NO_TYPES:
            return path, what, _NO_TYPES[tag]
        near = nearest_name(tag, known)
        return path, what, f"{f'did you mean {near}? ' if near else ''}give a type: {', '.join(known)}"
    if (rule := _rule_at(location)) is not None:
        said = f"{rule} lacks {location[-1]}" if kind == "missing" else f"{rule} does not have its form"
        return path, said, f"see {rule} in docs/schema.md"
    if kind == "missing":
        return path, "is not there", _FORMS.get(key, _SEE).replace("must be", "write", 1)
    if location[-1] in ("learn", "magnitude"):
        return path, f"{location[-1]} must be a number above 0", "write {learn: 0.05}"
    remedy = (_example(str(location[2])) if key == "bounds" else None) or _SEE
    if key == "order" and "columns" in path:
        return path, _COLUMN_ORDER, remedy
    listed = {key: f"must be {_words(first)}"} if kind == "literal_error" and location[-1] == key else {}
    named = (_FORMS.get(".".join(path)), _FORMS.get(".".join((*path[:1], key))), listed.get(key), _FORMS.get(key))
    return path, next(filter(None, named), "does not have the form of a schema"), remedy


def _rule_at(location: Sequence[int | str]) -> str | None:
    """Return the word of the rule within which a finding lies, if it lies in one."""
    own = location[2:] if location[:1] == ("tables",) else location
    return str(own[2]) if own[:1] == ("constraints",) and own[2:3] and own[2] in _RULES else None


def _words(found: ErrorDetails) -> str:
    """Return the words that may stand there, as pydantic lists them, without its quotes."""
    return str(found["ctx"]["expected"]).replace("'", "")


def _example(name: str) -> str | None:
    """Return how bounds of a column type are written."""
    return next((model.example for model in models() if model.model_fields["type"].default == name), None)


def _path(location: Sequence[int | str]) -> tuple[str, ...]:
    """Return the keys of the file that lead to the finding, without the names of pydantic's own alternatives."""
    parts = [str(part) for part in location]
    if parts[:1] == ["tables"]:  # tables, name, and then as in a table
        return (*parts[:2], *_path(location[2:])) if parts[2:3] == ["columns"] else tuple(parts[:3])
    if parts[:1] and parts[0] in _TYPES:  # columns, name, the tag of its type, key, …
        return (*parts[:2], *parts[3:4])
    return tuple(parts[: 2 if parts[:1] in _IN_TWO else 1])


def _key(path: tuple[str, ...]) -> str:
    """Return the key whose form is expected."""
    if path[:1] == ("tables",) and len(path) > 2:
        return _key(path[2:])
    if path[:1] and path[0] in _TYPES and len(path) > 2:
        return path[2]
    return path[-1] if path[:1] in (("images",), ("label",), ("series",)) else path[0] if path else ""
