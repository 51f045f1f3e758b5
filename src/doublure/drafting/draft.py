"""A first draft of a schema, for a data steward to fill in.

From the data the draft takes the columns' names and how they are stored, and nothing else: no value, bound, category,
count or missing cell. From the codebook, which is public, it takes whatever stands there. All the rest comes back
``undeclared``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from doublure.data.images.opening import open_images
from doublure.data.opening import Given, kind_of
from doublure.data.relational import open_related
from doublure.data.series.arrays import ArraySource
from doublure.data.series.opening import open_series
from doublure.data.series.rows import RowSource
from doublure.data.tables.opening import TableSource, open_table
from doublure.drafting.codebook import Entry, entry_for, read_codebook
from doublure.drafting.opening import SKELETON, doubled_names, left_out, opened
from doublure.drafting.proposals import Proposal, is_clock, of_days, proposal_for, rules_for
from doublure.drafting.relations import proposed, row_of
from doublure.drafting.storage_types import PLAIN, Storage, dtypes_of_objects, first_cells, storage_types
from doublure.errors import SchemaError, printable
from doublure.schema.columns import type_named
from doublure.schema.columns.dtypes import Dtype, nullable
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.kinds import KINDS, ByKind
from doublure.schema.scalars import check_name
from doublure.schema.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.schema.written import KEYS, TextForm
from doublure.support import yaml12 as yaml_text
from doublure.support.guessing import nearest_name

_WIDTH = 116
_OF_COLUMNS = ("table", "relational")
"""The kinds that a codebook describes."""
_MOST_UNKNOWN = 20
_TYPES = {"text": "category"}
_RULES = (
    "- {at_most: [COLUMN, COLUMN]}",
    "- {equal: [COLUMN, COLUMN]}",
    "- {implies: {when: {COLUMN: VALUE}, then: {COLUMN: missing}}}",
)
_HEAD = """\
# A draft. The columns' names and storage types are the data's; {codebook}.
#
# Every fact below is in one of three states:
#   declared     the value itself, because it is public:     bounds: [0, 120]
#   learned      bought from the data with privacy noise:    bounds: {{learn: 0.05}} costs 0.05 of the plan's epsilon
#   undeclared   nobody has decided yet: a plan refuses, and names the fact
# Declare what a codebook, a law or common sense says of any such table, never what you saw in this one.
# Text comes back as category; use id for what only identifies records, and ordinal where values have an order.
# `doublure schema check` lists what is still missing, as YAML to paste. docs/schema.md describes every key.
"""
_DEFAULTS = """\
# Whether cells may be empty: false where none may, true where some may, or the texts that mean missing, such as ["?"].
# It holds for every column below that says nothing else.
defaults: {missing: undeclared}
"""
_PROPOSED = """\
# Lines behind "#" are proposals, made from the form of cells and from names: if one is right, put it in the place of
# the line above it, and replace the words in CAPITALS by what is public. Codes that have an order are ordinal.
"""
_LEAVE_OUT = "take the line above out"
_ASKED = """\
# Which column is to be predicted? Add roles: [target] to it; reports then say how well models trained on the synthetic
# rows predict it. roles: [condition] lets any method be told how frequent a column's values are.
#
# Which rules hold in every such table? They cost nothing and are kept in every synthetic row; docs/schema.md has all.
"""
_UNIT = """\
# Whom the guarantee protects. Where one has several records, name the column that identifies them (type: id) and how
# many records of each are used: {name: patient, id: patient_nbr, max_records: 2}. Leave id null if each row is another
# person.
"""
_UNITS = """\
# How many there are: a published figure, or {learn: 0.01, magnitude: 10000} with a size that is public. Where a quarter
# is set aside before the fit, 75 % of a public total is public, too.
"""


_IMAGES_HEAD = """\
# A draft. The shape is the container's, where it says one.
#
# What is undeclared below has to be decided: declare it if it is public knowledge of any such set of images, never
# because you saw it in this one. `doublure schema check` lists what is still missing; docs/images.md has every key.
"""
_IMAGES = """\
# range: the numbers that stand for black and for full intensity in arrays. This one is usual for numbers of
# this type and was not checked against the data: values outside become black or white. on_mismatch: what to do with an
# image of another size or other colours: refuse the data, or resize the image. pictures: drawings (digits, letters,
# sketches: they may stand askew) or photographs (what reaches the borders or stands upright) says how strongly
# synthetic images are varied; left out, hardly.
"""
_SERIES_HEAD = """\
# A draft. Names, storage types and the length of arrays are the data's; numbers became channels, texts attributes.
#
# What is undeclared below has to be decided: declare it if it is public knowledge of any such set of series, never
# because you saw it in this one. `doublure schema check` lists what is still missing; docs/series.md has every key.
"""
_SERIES_UNIT = """\
# Whom the guarantee protects. {name: meter, id: meter_id, max_records: 31}: all of a meter's series, at most 31 of them
# used; with id: null each series by itself, which is no promise about whom the series are of.
"""
_SPELLED = """\
# How text is written, by the form of its first cells: take away "#" where it is right.
"""
_CALENDAR = """\
  # weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}  # or month, hour
  # weekend: {type: boolean, missing: false, from_time: weekend}
"""
_SERIES = """\
# time: the column of moments; where days and the clock stand in two columns, time_of_day names the second.
# source: the column that says which meter a reading comes from, if that is not unit.id.
# length and step: a day of hours is {length: 24, step: 1h}; windows begin at midnight of timezone.
# stamp: end, where 01:00 is the hour from midnight, as with hour-ending meters.
# stamped_from: DAY gives synthetic rows moments from that day on, under the names that the data has.
# gaps: steps without a reading are missing, or refuse the data, or drop the series.
"""
_CHANNELS = """\
# What is measured. A name that only identifies meters is no attribute: it goes to unit.id or source, and out of here.
# An attribute stays the same through a series; what changes from step to step is a channel.
"""
_RELATED_HEAD = """\
# A draft. Names and storage types are the data's; which table hangs on which is proposed by the names of columns alone;
# {codebook}.
#
# What is undeclared below has to be decided: declare it if it is public knowledge of any such tables, never because you
# saw it in these. `doublure schema check` lists what is still missing; docs/relational.md has every key.
"""
_OF_A_COLUMN = " " * 6
_RELATED_UNIT = """\
# Whom the guarantee protects, in a word: a row of the root with everything that hangs on it.
"""
_RELATED = """\
# max_children: how many rows of a table one unit has at most; what more there are is left out. order: by what a unit's
# rows follow one another; take it out if they do not.
"""
_MOST, _ORDER = "    max_children:", "    order:"
_NO_ORDER = "    # order: COLUMN  # if a unit's rows follow one another by a number or a date"
_LABEL = """\
# The classes that there are. With shares: {a: 0.3, b: 0.7} or shares: {learn: 0.05} synthetic images are as frequent
# in each class as real ones; without, classes are drawn equally often (docs/schema.md says by which methods).
"""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A drafted schema and what its file says beside it.

    Attributes:
        schema: Most facts undeclared.
        described: The columns that the codebook has a row for.
        unknown: Columns of the codebook that the data does not have.
        codebook: The codebook's file name, if one was given.
        unit: What its file says of the unit.
        proposals: Column -> what it may be beside what its storage says.
        suggested: What its text suggests of how it is written, beside what columns do.
        left_out: What its file says of columns that are not in it.
        head: What its file says first.
        body: A draft to what its file says behind the units.
    """

    schema: Schema
    head: str
    body: Callable[[Draft], str]
    described: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()
    codebook: str | None = None
    unit: str = _UNIT
    proposals: Mapping[str, Proposal] = field(default_factory=dict)
    suggested: Mapping[str, Any] = field(default_factory=dict)
    left_out: str = ""

    def to_yaml(self) -> str:
        """Return the schema file's text, with comments."""
        source = "no codebook was given" if self.codebook is None else f"the facts are from {printable(self.codebook)}"
        plain = self.schema.to_plain()
        lines = [self.head.format(codebook=source), *self._not_in_data()]
        lines.append(yaml_text.dump({"doublure": plain["doublure"], "kind": plain["kind"]}))
        lines.append(self.unit + f"unit: {yaml_text.inline(plain['unit'])}\n")
        lines.append(_UNITS + f"units: {yaml_text.inline(plain['units'])}\n")
        return "\n".join([*lines, self.body(self)])

    def comment(self, name: str) -> str:
        """Return the line, without an indent, that says that the codebook has no row for a column; else nothing."""
        return "" if self.codebook is None or name in self.described else "# Not in the codebook.\n"

    def _not_in_data(self) -> list[str]:
        if not self.unknown:
            return []
        near = [(name, nearest_name(name, self.schema.columns)) for name in self.unknown[:_MOST_UNKNOWN]]
        named = [printable(name) + (f" (did you mean {printable(like)}?)" if like else "") for name, like in near]
        more = len(self.unknown) - len(named)
        text = "The codebook also describes columns that the data does not have: " + ", ".join(named)
        text += f", and {more} more" if more else ""
        return [*(f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False)), ""]


def draft(
    data: Given,
    codebook: str | Path | None = None,
    kind: str | None = None,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_rows: int | None = None,
) -> Schema:
    """Draft a schema from a table's column names and storage types.

    Args:
        data: A path to a table, such as CSV, Parquet or Excel, or a DataFrame; for images, a path to NPZ, IDX, Parquet
            or a folder, or arrays.
            or a folder, or arrays.
        codebook: A CSV file with public facts; see :mod:`doublure.drafting.codebook`.
        kind: Of which kind the data is; told by its form if left out, which cannot tell series.
        encoding: Of a table's CSV files, if not UTF-8.
        delimiter: Between their fields, if not ``, ; tab |``.
        skip_rows: The number of lines, or rows of a sheet, above the header.

    Returns:
        A schema in which most facts are undeclared.

    Raises:
        DataError: The data cannot be read.
        SchemaError: A column's name cannot be used, or a row of the codebook is malformed.

    Example:
        >>> schema = db.draft("people.csv")
        >>> schema.columns["age"].type, schema.undeclared[:2]
        ('integer', ('units', 'columns.age.missing'))
    """
    return drafted(data, codebook, kind, encoding=encoding, delimiter=delimiter, skip_rows=skip_rows).schema


def drafted(
    data: Given,
    codebook: str | Path | None = None,
    kind: str | None = None,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_rows: int | None = None,
) -> Draft:
    """Draft a schema, with the comments that its file gets; see :func:`draft`."""
    kind = kind or kind_of(data)
    if kind not in KINDS:
        raise SchemaError("is not known", field="kind", remedy=f"use one of: {', '.join(KINDS)}")
    if codebook is not None and kind not in _OF_COLUMNS:
        raise SchemaError("describes columns of a table", field="codebook", remedy=f"leave it out for {kind}")
    keys: dict[str, Any] = {
        key: value for key, value in (("encoding", encoding), ("delimiter", delimiter)) if value is not None
    }
    if skip_rows is not None:
        keys["skip_rows"] = skip_rows
    keys |= doubled_names(data, kind, keys)
    if not keys:
        return DRAFTS[kind](data, codebook)
    if not issubclass(KINDS[kind].schema, TextForm):
        raise SchemaError("is for the files of tables and series", field=next(iter(keys)), remedy="leave it out")
    return DRAFTS[kind](data, codebook, keys)


def _drafted_table(data: Any, codebook: str | Path | None, keys: Mapping[str, str] | None = None) -> Draft:
    entries = {} if codebook is None else read_codebook(codebook)
    source, suggested = opened(open_table, data, keys)  # which refuses arrays itself
    for name in source.columns:
        try:
            check_name(name)
        except ValueError as error:
            head, _, remedy = str(error).partition("; ")
            raise SchemaError(head, field=source.name, remedy=remedy) from None
    stored, dtypes, proposals = _stored(source)
    indices, said = left_out(source)
    stored = {name: storage for name, storage in stored.items() if name not in indices}
    described = {name: entry_for(name, entries) for name in stored}
    columns = {name: _column(name, storage, described[name], dtypes.get(name)) for name, storage in stored.items()}
    form, suggested = _form_told(source, suggested)
    return Draft(
        schema=Schema.from_plain({**SKELETON, **form, **(keys or {}), "columns": columns}, source.name),
        head=_HEAD,
        body=_columns,
        described=frozenset(name for name, entry in described.items() if entry),
        unknown=tuple(name for name, entry in entries.items() if entry not in described.values()),
        proposals={
            name: proposal
            for name, proposal in proposals.items()
            if name in described and ((entry := described[name]) is None or not entry.facts)
        },
        codebook=None if codebook is None else Path(codebook).name,
        suggested=suggested,
        left_out=said,
    )


def _text_form(made: Draft) -> str:
    """Return the keys that say how text is written, as they were given."""
    own = made.schema.to_plain()
    return "".join(f"{key}: {yaml_text.inline(own[key])}\n" for key in KEYS if key in own)


def _proposed_form(made: Draft) -> str:
    """Return such keys as far as cells suggest them, as comments."""
    keys = {key: value for proposal in made.proposals.values() for key, value in proposal.keys.items()}
    keys |= made.suggested
    return "".join(f"# {key}: {yaml_text.inline(value)}\n" for key, value in keys.items())


def _form_of(made: Draft) -> str:
    """Return both, set apart from what follows."""
    given, proposed_ones = _text_form(made), _proposed_form(made)
    text = given + (_SPELLED + proposed_ones if proposed_ones else "")
    return f"{text}\n" if text else ""


def _columns(made: Draft) -> str:
    own = made.schema.to_plain()
    text = _text_form(made)
    text += ("\n" if text else "") + _DEFAULTS + _proposed_form(made) + "\n"
    text += (_PROPOSED if made.proposals else "") + made.left_out + "columns:\n"
    columns = own["columns"]
    for name, column in columns.items():
        if column.get("missing") == UNDECLARED:
            del column["missing"]
        text += f"  {said}" if (said := made.comment(name)) else ""
        text += f"  {yaml_text.inline(name)}: {yaml_text.inline(column)}\n"
        if (proposal := made.proposals.get(name)) is not None:
            text += f"  # {_proposed_line(name, proposal)}\n"
    rules = [rule for rule, _ in rules_for(made.schema.columns)]
    return text + "\n" + _ASKED + "".join(f"# {line}\n" for line in ["constraints:", *(rules or _RULES)])


def _drafted_images(data: Any, codebook: str | Path | None) -> Draft:
    source = open_images(data)
    source.check_form()
    plain: dict[str, Any] = {"doublure": 1, "kind": "images", "images": {}}
    if source.shape is not None:
        plain["images"] = {"shape": list(source.shape), "range": list(source.usual_range)}
    if source.labelled:
        plain["label"] = {"values": UNDECLARED}
    return Draft(schema=Schema.from_plain(plain, source.name), head=_IMAGES_HEAD, body=_pictures)


def _pictures(made: Draft) -> str:
    plain = made.schema.to_plain()
    label = [_LABEL + f"label: {yaml_text.inline(plain['label'])}"] if "label" in plain else []
    return "\n".join([_IMAGES + f"images: {yaml_text.inline(plain['images'])}\n", *label]) + "\n"


def _drafted_series(data: Any, codebook: str | Path | None, keys: Mapping[str, str] | None = None) -> Draft:
    """Draft from a table of readings, or from arrays: moments, numbers and texts have their places."""
    source, suggested = opened(open_series, data, keys)
    lengths: set[int] = set()
    columns: Mapping[str, str] = {}  # a channel, or an attribute, is of no type but these
    found: dict[str, Proposal] = {}
    if isinstance(source, ArraySource):
        columns, lengths = source.storage()
    elif isinstance(source, RowSource):
        stored, _, found = _stored(source.table)
        columns = {name: storage if storage in PLAIN else "text" for name, storage in stored.items()}
    dates = [name for name, proposal in found.items() if columns[name] == "text" and _date_format(proposal)]
    moments = [name for name, storage in columns.items() if storage in ("date", "datetime")]
    form, suggested = _form_told(getattr(source, "table", None), suggested)
    plain: dict[str, Any] = {"doublure": 1, "kind": "series", **form, **(keys or {})}
    plain |= {"series": {}, "channels": {}, "attributes": {}}
    clock = None
    if moments or dates:
        plain["series"] |= {"time": (moments or dates)[0]}
        clock = clock_beside((moments or dates)[0], source.table) if isinstance(source, RowSource) else None
        plain["series"] |= {"time_of_day": clock} if clock is not None else {}
        if not moments:
            suggested |= {"date_format": _date_format(found[dates[0]])}
    if len(lengths) == 1:
        plain["series"] |= {"length": lengths.pop()}
    for name, storage in columns.items():
        if name == clock:
            continue
        if storage in ("integer", "real") or "decimal" in getattr(found.get(name), "keys", ()):
            plain["channels"][name] = {"type": storage if storage in ("integer", "real") else "real"}
        elif storage in ("text", "boolean") and name not in dates:
            plain["attributes"][name] = {"type": _TYPES.get(storage, storage)}
    if not plain["channels"]:
        remedy = "give a column of numbers, or an array of them with an axis of steps"
        raise SchemaError("holds no numbers that could be channels", field=source.name, remedy=remedy)
    schema = Schema.from_plain(plain, source.name)
    return Draft(
        schema=schema, head=_SERIES_HEAD, body=_windows, unit=_SERIES_UNIT, proposals=found, suggested=suggested
    )


def _stored(table: TableSource) -> tuple[dict[str, Storage], dict[str, Dtype], dict[str, Proposal]]:
    """Return the form of columns' cells, the storage types of a typed container, and what they may be beside that."""
    stored, first = storage_types(table), first_cells(table)
    dtypes = {**dtypes_of_objects(first), **table.dtypes} if table.dtypes else {}
    found: dict[str, Proposal] = {}
    for name, storage in stored.items():
        proposal = proposal_for(name, storage, first[name])
        if proposal is not None and proposal.column is not None:
            proposal = replace(proposal, column=_with_dtype(proposal.column, dtypes.get(name)))
        if proposal is not None:
            found[name] = proposal
    return stored, dtypes, found


def _date_format(proposal: Proposal) -> str | None:
    """Return the form of dates that a proposal says."""
    return None if proposal.column is None else proposal.column.get("date_format")


def _form_told(table: TableSource | None, suggested: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a header tells of how its file is written, and what else is suggested: quoting may be of names."""
    told = dict({} if table is None else table.text_form)
    return {key: told[key] for key in told if key != "quoting"}, suggested | {
        key: told[key] for key in told if key == "quoting"
    }


def _with_dtype(column: Mapping[str, Any], dtype: Dtype | None) -> Mapping[str, Any]:
    """Return what is said of a column, with how its container stores it, where it would come out otherwise."""
    model = type_named(column["type"])
    if dtype is None or dtype not in model.dtypes or dtype == model.own_dtype or "written" in column:
        return column
    for each in dict.fromkeys((dtype, nullable(dtype))):
        with_it = {**column, "dtype": each}
        try:
            model.model_validate(with_it)
        except ValidationError:  # a codebook may say what its container does not hold
            continue
        return with_it
    return column


def clock_beside(time: str, table: TableSource) -> str | None:
    """Return the column that holds the clock of a column of days; None where days have one, or there is none."""
    stored, first = storage_types(table), first_cells(table)
    if not of_days(first[time]):
        return None
    return next((name for name, storage in stored.items() if is_clock(name, storage, first[name])), None)


def _windows(made: Draft) -> str:
    schema = SeriesSchema.of(made.schema)
    plain = schema.to_plain()
    if schema.series.time is not None:
        plain["series"] = {"step": schema.series.step} | plain["series"]
    text = _form_of(made) + _SERIES
    text += f"series: {yaml_text.inline(plain['series'])}\n\n" + _CHANNELS
    for under in ("channels", "attributes"):
        text += f"{under}:\n" if plain.get(under) else ""
        for name, column in plain.get(under, {}).items():
            text += f"  {yaml_text.inline(name)}: {yaml_text.inline(column)}\n"
            if (proposal := made.proposals.get(name)) is not None:
                text += f"  # {_of_series(name, proposal)}\n"
    if schema.series.time is not None:
        text += _CALENDAR if plain.get("attributes") else f"# attributes:\n{_CALENDAR}"
    return text


def _of_series(name: str, proposal: Proposal) -> str:
    """Return what a column of series may be: one that tells records apart is no column there, but a key."""
    if proposal.column and proposal.column["type"] == "id":
        return f"take {yaml_text.inline(name)} out and name it in unit.id or series.source, if {proposal.why}"
    if proposal.keys:
        return f"proposed above: {' and '.join(proposal.keys)}, if {proposal.why}"
    line = _proposed_line(name, proposal)
    codes = proposal.column is not None and proposal.column["type"] == "category"
    return f"{line}; under attributes, if it stays the same through a series" if codes else line


def _proposed_line(name: str, proposal: Proposal) -> str:
    """Return what a column may be, and if what is so; one that says nothing of itself is better left out."""
    line = f"{yaml_text.inline(name)}: {yaml_text.inline(proposal.column)}" if proposal.column else _LEAVE_OUT
    return f"{line}  # if {proposal.why}"


def _drafted_related(data: Any, codebook: str | Path | None, keys: Mapping[str, str] | None = None) -> Draft:
    """Draft from several tables: which hangs on which is proposed by their headers, the rest is the codebook's.

    Of a child table, a column that the codebook has as an id is its key, where no name says which one is.

    A row of the codebook is named ``table.column``, or for a column of every table by the column alone.
    """
    entries = {} if codebook is None else read_codebook(codebook)
    source, suggested = opened(open_related, data, keys)
    described: dict[str, Entry | None] = {}
    found = proposed({name: table.columns for name, table in source.tables.items()})
    tables: dict[str, Any] = {}
    proposals: dict[str, Proposal] = {}
    for name in (found.root, *found.children):
        stored, dtypes, of_columns = _stored(source.tables[name])
        own_rows = {own: entry_for(f"{name}.{own}", entries) or entry_for(own, entries) for own in stored}
        facts: dict[str, Any] = {"key": found.key}
        if name != found.root:
            link = found.children[name]
            ids = [own for own, entry in own_rows.items() if entry is not None and entry.facts.get("type") == "id"]
            key = link.key or next((own for own in ids if own != link.foreign_key), None)
            facts = {} if key is None else {"key": key}
            facts |= {"parent": found.root, "foreign_key": link.foreign_key, "max_children": UNDECLARED}
            moments = [own for own, storage in stored.items() if storage in ("date", "datetime")]
            facts |= {"order": moments[0]} if moments else {}
        own_keys = {facts.get("key"), facts.get("foreign_key")}
        columns = {
            own: {"type": "id"} if own in own_keys else _column(own, each, own_rows[own], dtypes.get(own))
            for own, each in stored.items()
        }
        tables[name] = facts | {"columns": columns}
        described |= {f"{name}.{own}": entry for own, entry in own_rows.items()}
        proposals |= {
            f"{name}.{own}": each for own, each in of_columns.items() if own not in own_keys and own_rows[own] is None
        }
    form, suggested = _form_told(source.tables[found.root], suggested)
    plain = {
        "doublure": 1,
        "kind": "relational",
        "unit": {"name": row_of(found.root)},
        **form,
        **(keys or {}),
        "tables": tables,
    }
    return Draft(
        schema=Schema.from_plain(plain, source.name),
        head=_RELATED_HEAD,
        body=_related,
        unit=_RELATED_UNIT,
        described=frozenset(name for name, entry in described.items() if entry),
        unknown=tuple(name for name, entry in entries.items() if entry not in described.values()),
        codebook=None if codebook is None else Path(codebook).name,
        proposals=proposals,
        suggested=suggested,
    )


def _related(made: Draft) -> str:
    text = made.schema.to_yaml()
    names, lines = iter(made.schema.columns), list[str]()
    for line in text[text.index("\ntables:") + 1 :].splitlines():
        if not line.startswith(_OF_A_COLUMN):
            if lines and lines[-1].startswith(_MOST) and not line.startswith(_ORDER):
                lines.append(_NO_ORDER)
            lines.append(line)
            continue
        name = next(names)  # one line a column, in the schema's order
        lines += [_OF_A_COLUMN + said.rstrip()] if (said := made.comment(name)) else []
        lines.append(line)
        if (proposal := made.proposals.get(name)) is not None:
            lines.append(f"{_OF_A_COLUMN}# {_proposed_line(name.split('.', 1)[1], proposal)}")
    return _form_of(made) + _RELATED + "\n".join(lines) + "\n"


DRAFTS: ByKind[Callable[..., Draft]] = ByKind(
    "draft", table=_drafted_table, images=_drafted_images, series=_drafted_series, relational=_drafted_related
)


def _column(name: str, storage: str, entry: Entry | None, dtype: Dtype | None) -> dict[str, Any]:
    type_ = _TYPES.get(storage, storage)
    if entry is None:
        return dict(_with_dtype({"type": type_}, dtype))
    if "type" not in entry.facts and "values" in entry.facts:
        type_ = "category"  # a list of values says more than how they are stored
    return dict(_with_dtype(entry.column(name, type_), None if "dtype" in entry.facts else dtype))
