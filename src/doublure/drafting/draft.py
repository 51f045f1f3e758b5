"""A first draft of a schema, for a data steward to fill in.

From the data the draft takes the columns' names and how they are stored, and nothing else: no value, bound, category,
count or missing cell. From the codebook, which is public, it takes whatever stands there. All the rest comes back
``undeclared``.
"""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from doublure.data.images.opening import open_images
from doublure.data.opening import Given, kind_of
from doublure.data.relational import open_related
from doublure.data.series.arrays import ArraySource
from doublure.data.series.opening import open_series
from doublure.data.series.rows import RowSource
from doublure.data.tables.opening import open_table
from doublure.drafting.codebook import Entry, entry_for, read_codebook
from doublure.drafting.proposals import Proposal, proposal_for, rules_for
from doublure.drafting.relations import proposed, row_of
from doublure.drafting.storage_types import first_cells, storage_types
from doublure.errors import SchemaError, printable
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.kinds import KINDS, ByKind
from doublure.schema.scalars import check_name
from doublure.schema.schema import Schema
from doublure.schema.written import KEYS
from doublure.support import yaml12 as yaml_text

_WIDTH = 116
_MOST_UNKNOWN = 20
_TYPES = {"text": "category"}
_SKELETON: Mapping[str, Any] = {"doublure": 1, "kind": "table", "columns": {"any": {"type": "boolean"}}}
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
# many records of each are used: {name: patient, id: patient_nbr, max_records: 2}.
"""
_UNITS = """\
# How many there are: a published figure, or {learn: 0.01, magnitude: 10000} with a size that is public.
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
_SERIES = """\
# time: the column of moments. source: the column that says which meter a reading comes from, if that is not unit.id.
# length and step: a day of hours is {length: 24, step: 1h}; windows begin at midnight of timezone.
# gaps: steps without a reading are missing, or refuse the data, or drop the series.
"""
_CHANNELS = """\
# What is measured. A name that only identifies meters is no attribute: it goes to unit.id or source, and out of here.
"""
_RELATED_HEAD = """\
# A draft. Names and storage types are the data's; which table hangs on which is proposed by the names of columns alone.
#
# What is undeclared below has to be decided: declare it if it is public knowledge of any such tables, never because you
# saw it in these. `doublure schema check` lists what is still missing; docs/relational.md has every key.
"""
_RELATED_UNIT = """\
# Whom the guarantee protects, in a word: a row of the root with everything that hangs on it.
"""
_RELATED = """\
# max_children: how many rows of a table one unit has at most; what more there are is left out. order: by what a unit's
# rows follow one another; take it out if they do not.
"""
_LABEL = """\
# The classes that there are. With shares: {a: 0.3, b: 0.7} or shares: {learn: 0.05} synthetic images are as frequent
# in each class as real ones; without, classes are drawn equally often (docs/schema.md says by which methods).
"""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A drafted schema and what its file says beside it.

    Attributes:
        schema: Most facts undeclared.
        descriptions: Column -> what the codebook says it means.
        unknown: Columns of the codebook that the data does not have.
        codebook: The codebook's file name, if one was given.
        unit: What its file says of the unit.
        proposals: Column -> what it may be beside what its storage says.
        head: What its file says first.
        body: A draft to what its file says behind the units.
    """

    schema: Schema
    head: str
    body: Callable[[Draft], str]
    descriptions: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    codebook: str | None = None
    unit: str = _UNIT
    proposals: Mapping[str, Proposal] = field(default_factory=dict)

    def to_yaml(self) -> str:
        """Return the schema file's text, with comments."""
        source = "no codebook was given" if self.codebook is None else f"the facts are from {printable(self.codebook)}"
        plain = self.schema.to_plain()
        lines = [self.head.format(codebook=source), *self._not_in_data()]
        lines.append(yaml_text.dump({"doublure": plain["doublure"], "kind": plain["kind"]}))
        lines.append(self.unit + f"unit: {yaml_text.inline(plain['unit'])}\n")
        lines.append(_UNITS + f"units: {yaml_text.inline(plain['units'])}\n")
        return "\n".join([*lines, self.body(self)])

    def comment(self, name: str) -> list[str]:
        """Return what the codebook says of a column, in lines."""
        silent = "" if self.codebook is None else "Not in the codebook."
        text = self.descriptions.get(name, silent)
        return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)

    def _not_in_data(self) -> list[str]:
        if not self.unknown:
            return []
        named = [f"{printable(name)}{_guess(name, self.schema.columns)}" for name in self.unknown[:_MOST_UNKNOWN]]
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
) -> Schema:
    """Draft a schema from a table's column names and storage types.

    Args:
        data: A path to CSV or Parquet, or a DataFrame; for images, a path to NPZ, IDX, Parquet or a folder, or arrays.
        codebook: A CSV file with public facts; see :mod:`doublure.drafting.codebook`.
        kind: Of which kind the data is; told by its form if left out, which cannot tell series.
        encoding: Of a table's CSV files, if not UTF-8.
        delimiter: Between their fields, if not ``, ; tab |``.

    Returns:
        A schema in which most facts are undeclared.

    Raises:
        DataError: The data cannot be read, or a name stands twice in its header.
        SchemaError: A column's name cannot be used, or a row of the codebook is malformed.
    """
    return drafted(data, codebook, kind, encoding=encoding, delimiter=delimiter).schema


def drafted(
    data: Given,
    codebook: str | Path | None = None,
    kind: str | None = None,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Draft:
    """Draft a schema, with the comments that its file gets; see :func:`draft`."""
    kind = kind or kind_of(data)
    if kind not in KINDS:
        raise SchemaError("is not known", field="kind", remedy=f"use one of: {', '.join(KINDS)}")
    if codebook is not None and not KINDS[kind].schema.only_columns:
        raise SchemaError("describes columns of a table", field="codebook", remedy=f"leave it out for {kind}")
    keys = {key: value for key, value in (("encoding", encoding), ("delimiter", delimiter)) if value is not None}
    if not keys:
        return DRAFTS[kind](data, codebook)
    if kind != "table":
        raise SchemaError("is for the files of one table", field=next(iter(keys)), remedy="leave it out")
    return _drafted_table(data, codebook, keys)


def _drafted_table(data: Any, codebook: str | Path | None, keys: Mapping[str, str] | None = None) -> Draft:
    entries = {} if codebook is None else read_codebook(codebook)
    written = Schema.from_plain({**_SKELETON, **keys}).written if keys else None
    source = open_table(data, written)  # which refuses arrays itself
    for name in source.columns:
        try:
            check_name(name)
        except ValueError as error:
            head, _, remedy = str(error).partition("; ")
            raise SchemaError(head, field=source.name, remedy=remedy) from None
    stored, first = storage_types(source), first_cells(source)
    described = {name: entry_for(name, entries) for name in stored}
    columns = {name: _column(name, storage, described[name]) for name, storage in stored.items()}
    found = {
        name: proposal_for(name, storage, first[name])
        for name, storage in stored.items()
        if (entry := described[name]) is None or not entry.facts
    }
    return Draft(
        schema=Schema.from_plain({**_SKELETON, **(keys or {}), "columns": columns}, source.name),
        head=_HEAD,
        body=_columns,
        descriptions={name: entry.description for name, entry in described.items() if entry and entry.description},
        unknown=tuple(name for name, entry in entries.items() if entry not in described.values()),
        proposals={name: proposal for name, proposal in found.items() if proposal is not None},
        codebook=None if codebook is None else Path(codebook).name,
    )


def _columns(made: Draft) -> str:
    keys = {key: value for proposal in made.proposals.values() for key, value in proposal.keys.items()}
    own = made.schema.to_plain()
    text = "".join(f"{key}: {yaml_text.inline(own[key])}\n" for key in KEYS if key in own)
    text += (
        ("\n" if text else "")
        + _DEFAULTS
        + "".join(f"# {key}: {yaml_text.inline(value)}\n" for key, value in keys.items())
        + "\n"
    )
    text += (_PROPOSED if made.proposals else "") + "columns:\n"
    columns = own["columns"]
    for name, column in columns.items():
        if column.get("missing") == UNDECLARED:
            del column["missing"]
        text += "".join(f"  # {line}\n" for line in made.comment(name))
        text += f"  {yaml_text.inline(name)}: {yaml_text.inline(column)}\n"
        if (proposal := made.proposals.get(name)) is not None:
            line = f"{yaml_text.inline(name)}: {yaml_text.inline(proposal.column)}" if proposal.column else _LEAVE_OUT
            text += f"  # {line}  # if {proposal.why}\n"
    rules = [rule for rule, _ in rules_for({name: column["type"] for name, column in columns.items()})]
    return text + "\n" + _ASKED + "".join(f"# {line}\n" for line in ["constraints:", *(rules or _RULES)])


def _drafted_images(data: Any, codebook: str | Path | None) -> Draft:
    source = open_images(data)
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


def _drafted_series(data: Any, codebook: str | Path | None) -> Draft:
    """Draft from a table of readings, or from arrays: moments, numbers and texts have their places."""
    source = open_series(data)
    lengths: set[int] = set()
    columns: dict[str, str] = {}
    if isinstance(source, ArraySource):
        columns, lengths = source.storage()
    elif isinstance(source, RowSource):
        columns |= storage_types(source.table)
    moments = [name for name, storage in columns.items() if storage in ("date", "datetime")]
    plain: dict[str, Any] = {"doublure": 1, "kind": "series", "series": {}, "channels": {}, "attributes": {}}
    if moments:
        plain["series"] |= {"time": moments[0]}
    if len(lengths) == 1:
        plain["series"] |= {"length": lengths.pop()}
    for name, storage in columns.items():
        if storage in ("integer", "real"):
            plain["channels"][name] = {"type": storage}
        elif storage in ("text", "boolean"):
            plain["attributes"][name] = {"type": _TYPES.get(storage, storage)}
    if not plain["channels"]:
        remedy = "give a column of numbers, or an array of them with an axis of steps"
        raise SchemaError("holds no numbers that could be channels", field=source.name, remedy=remedy)
    return Draft(schema=Schema.from_plain(plain, source.name), head=_SERIES_HEAD, body=_windows)


def _windows(made: Draft) -> str:
    text = made.schema.to_yaml()
    series, channels = text.index("\nseries:") + 1, text.index("\nchannels:") + 1
    return _SERIES + text[series:channels] + "\n" + _CHANNELS + text[channels:]


def _drafted_related(data: Any, codebook: str | Path | None) -> Draft:
    """Draft from several tables: which hangs on which is proposed by their headers."""
    source = open_related(data)
    found = proposed({name: table.columns for name, table in source.tables.items()})
    tables: dict[str, Any] = {}
    for name in (found.root, *found.children):
        stored = storage_types(source.tables[name])
        facts: dict[str, Any] = {"key": found.key}
        if name != found.root:
            link = found.children[name]
            facts = {} if link.key is None else {"key": link.key}
            facts |= {"parent": found.root, "foreign_key": link.foreign_key, "max_children": UNDECLARED}
            moments = [own for own, storage in stored.items() if storage in ("date", "datetime")]
            facts |= {"order": moments[0]} if moments else {}
        keys = {facts.get("key"), facts.get("foreign_key")}
        columns = {own: {"type": "id"} if own in keys else _column(own, each, None) for own, each in stored.items()}
        tables[name] = facts | {"columns": columns}
    plain = {"doublure": 1, "kind": "relational", "unit": {"name": row_of(found.root)}, "tables": tables}
    return Draft(schema=Schema.from_plain(plain, source.name), head=_RELATED_HEAD, body=_related, unit=_RELATED_UNIT)


def _related(made: Draft) -> str:
    text = made.schema.to_yaml()
    return _RELATED + text[text.index("\ntables:") + 1 :]


DRAFTS: ByKind[Callable[[Any, str | Path | None], Draft]] = ByKind(
    "draft", table=_drafted_table, images=_drafted_images, series=_drafted_series, relational=_drafted_related
)


def _column(name: str, storage: str, entry: Entry | None) -> dict[str, Any]:
    type_ = _TYPES.get(storage, storage)
    if entry is None:
        return {"type": type_}
    if "type" not in entry.facts and "values" in entry.facts:
        type_ = "category"  # a list of values says more than how they are stored
    entry.column(name, type_)
    return {"type": type_, **entry.facts}


def _guess(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {printable(near[0])}?)" if near else ""
