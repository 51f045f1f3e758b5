"""A first draft of a schema, for a data steward to fill in.

From the data the draft takes the columns' names and how they are stored, and nothing else: no value, bound, category,
count or missing cell. From the codebook, which is public, it takes whatever stands there. All the rest comes back
``undeclared``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from doublure.data.images.opening import open_images
from doublure.data.opening import Given, kind_of
from doublure.data.relational import open_related
from doublure.data.series.arrays import ArraySource
from doublure.data.series.opening import open_series
from doublure.data.series.rows import RowSource
from doublure.data.tables.opening import TableSource, open_table
from doublure.drafting.codebook import SECTIONS, DataDescription, Entry
from doublure.drafting.image_forms import label_wanted, left_beside, list_of_pictures, names_pictures
from doublure.drafting.metadata.codebook import facts_in_words
from doublure.drafting.metadata.registry import OWN, read_metadata
from doublure.drafting.opening import SKELETON, doubled_names, left_out, opened
from doublure.drafting.proposals import (
    Proposal,
    following_bounds,
    is_clock,
    of_days,
    of_lists,
    proposed_line,
    rules_for,
    series_line,
)
from doublure.drafting.relations import proposed, row_of, rows_named
from doublure.drafting.series_forms import JOINED, NO_FORMS, TableForms, moment_parts
from doublure.drafting.storage_types import PLAIN, Storage, first_cells, storage_types
from doublure.drafting.stored_forms import drafted_type, stored_forms, with_dtype
from doublure.drafting.whose import id_names, proposed_units
from doublure.errors import SchemaError, SettingError, printable
from doublure.schema.columns.dtypes import Dtype
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.kinds import KINDS, ByKind
from doublure.schema.scalars import check_name
from doublure.schema.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.schema.unit import is_id_name
from doublure.schema.written import KEYS, TextForm
from doublure.support import yaml12 as yaml_text
from doublure.support.guessing import nearest_name

_WIDTH = 116
_OF_COLUMNS = ("table", "relational", "series")
"""The kinds that a codebook describes."""
_PLACED = {
    *("doublure", "kind", "unit", "units", "columns", "tables", "series", *SECTIONS, "images", "label", "constraints"),
    *KEYS,
}
"""The keys at the top of a schema file that have a place of their own in a draft."""
_MOST_UNKNOWN = 20
_NUMBERS = ("integer", "real")
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
_INFERRED = """\
# Programs write such files from data. What they took from cells, such as a list of values, is not public by that: check
# each fact.
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
_ASKED = """\
# Which column is to be predicted? Add roles: [target] to it; reports then say how well models trained on the synthetic
# rows predict it. roles: [condition] lets any method be told how frequent a column's values are.
#
# Which rules hold in every such table? They cost nothing and are kept in every synthetic row; docs/schema.md has all.
"""
_UNIT = """\
# Whom the guarantee protects. Where one has several records, name the column that identifies them (type: id) and how
# many records of each are used: {name: patient, id: patient_nbr, max_records: 2}. Leave id null if each row is another
# person. A column of type id has to be answered for: whose it is, or id: none.
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
_RANGE = """\
# range: the numbers that stand for black and for full intensity. This one is usual for numbers of
# this type and was not checked against the data: values outside become black or white.
"""
_IMAGES = """\
# on_mismatch: what to do with an image of another size or other colours: refuse the data, or resize the image.
# pictures: aligned (everything stands in the same place: faces, scans), scenes (things in changing places) or drawings
# (digits, letters: they may stand askew).
"""
_SERIES_HEAD = """\
# A draft. Names, storage types and the length of arrays are the data's; numbers became channels, texts attributes.
#
# What is undeclared below has to be decided: declare it if it is public knowledge of any such set of series, never
# because you saw it in this one. `doublure schema check` lists what is still missing; docs/series.md has every key.
"""
_IMAGES_UNIT = """\
# Whom the guarantee protects. {name: patient, id: patient_id, max_records: 4}: all of a patient's images, at most 4 of
# them used; with id: null each image by itself.
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
# length and step: a day of hours is {length: 24, step: 1h}; windows begin at midnight of timezone;
# begins: 6h lets them begin at six.
# stamp: end, where 01:00 is the hour from midnight, as with hour-ending meters.
# stamped_from: synthetic rows have moments from this day on, under the names that the data has. Any day will do.
# gaps: steps without a reading are missing, or refuse the data, or drop the series.
"""
_STAMPED_FROM = "2001-01-01"
"""The first day of the century, a Monday: no data's own, and any would do."""
_NOT_OF_SERIES = """\
# {name} is left out: it holds dates or times, and time is the one column of moments. If it belongs there, name it in
# series.time or time_of_day; another date of a series is lost.
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
_PUBLIC = """\
# Tables that others lead to. Of those that are public put the file beside this one, and take these lines in; say in
# references: {COLUMN: TABLE} of a table below which of its columns holds their keys, and make it a category.
# public:"""
_MOST, _ORDER = "    max_children:", "    order:"
_COLUMNS = "    columns:"
_LINKS = (
    "    # Does a column name a private row beside the parent's? If so, take this in, and make the column type: id."
)
_NO_ORDER = "    # order: COLUMN  # if a unit's rows follow one another by a number or a date"
_LABEL = """\
# The classes that there are. With shares: {a: 0.3, b: 0.7} or shares: {learn: 0.05} synthetic images are as frequent
# in each class as real ones; without, classes are drawn equally often (docs/schema.md says by which methods).
"""


@dataclass(frozen=True, kw_only=True)
class DraftedColumn:
    """A column of a table's header, and what a draft says of it.

    Attributes:
        name: As the header has it.
        storage: How its cells are stored; empty where no data was read.
        facts: As a schema file has them; files beside the codebook are named.
        left_out: Whether it is no part of the draft: the codebook leaves it out, or it numbers rows.
        proposal: What it may be beside that; None without.
        described: Whether the codebook has it.
        unread: What was not read of the codebook's row, and why; and what was decided where it says nothing.
    """

    name: str
    storage: Storage
    facts: Mapping[str, Any]
    left_out: bool
    proposal: Proposal | None
    described: bool
    unread: tuple[str, ...] = ()


class RowReading(NamedTuple):
    """The reading of a codebook's row.

    Attributes:
        column: The column that it describes.
        read: The facts, in a line; empty where there are none.
        unread: What was not read, and why.
    """

    column: str
    read: str
    unread: tuple[str, ...]

    @property
    def line(self) -> str:
        """The row in a line."""
        return f"{printable(self.column)}: {'; '.join(filter(None, (self.read, *self.unread))) or 'no fact'}"


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A drafted schema and what its file says beside it.

    Attributes:
        schema: Most facts undeclared.
        head: What its file says first.
        body: A draft to what its file says behind the units.
        metadata: The codebook, if one was given.
        rows: Column -> its entry in the codebook.
        unit: What its file says of the unit.
        proposals: Column -> what it may be beside what its storage says.
        suggested: What its text suggests of how it is written, beside what columns do.
        beside: Whether the file lies beside the codebook, so that it can name the same files.
        left_out: What its file says of columns that are not in it.
        again: What its owner said of the tables, to draft it again with.
        others: Tables that hang on no root, as :class:`~doublure.drafting.relations.Relations` has them.
        named: Columns that may name rows, as :func:`~doublure.drafting.relations.rows_named` has them.
        first: What its owner decides first, a sentence each.
        perhaps_series: Whether a table has the columns of readings over time: moments, numbers, and at most one name.
        stored: Column of the headers, of related tables ``table.column`` -> how its cells are stored, those that are
            left out included.
    """

    schema: Schema
    head: str
    body: Callable[[Draft], str]
    metadata: DataDescription | None = None
    rows: Mapping[str, Entry] = field(default_factory=dict)
    unit: str = _UNIT
    proposals: Mapping[str, Proposal] = field(default_factory=dict)
    suggested: Mapping[str, Any] = field(default_factory=dict)
    beside: bool = False
    left_out: str = ""
    again: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stored: Mapping[str, Storage] = field(default_factory=dict)
    perhaps_series: bool = False
    first: Sequence[str] = ()

    @property
    def columns(self) -> tuple[DraftedColumn, ...]:
        """The columns of the headers, in their order, of related tables named ``table.column``.

        Where no data was read they are those of the codebook.
        """
        plain = self.schema.to_plain()
        drafted = plain.get("columns") or {
            f"{table}.{own}": facts
            for table, each in plain.get("tables", {}).items()
            for own, facts in each["columns"].items()
        }
        found = []
        for name in self.stored or drafted:
            storage = self.stored.get(name)
            row = self.rows.get(name)
            alone = {"type": "" if storage is None else drafted_type(storage), "missing": UNDECLARED}
            files = {} if row is None else row.files
            column = DraftedColumn(
                name=name,
                storage=storage or "",
                facts={**drafted.get(name, alone), **files},
                left_out=name not in drafted,
                proposal=self.proposals.get(name),
                described=row is not None,
                unread=() if row is None else (*row.notes, *row.decided),
            )
            found.append(column)
        return tuple(found)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns of the codebook that the data does not have."""
        entries = {} if self.metadata is None else self.metadata.entries
        return tuple(name for name, row in entries.items() if not row.omitted and row not in self.rows.values())

    @property
    def reading(self) -> tuple[RowReading, ...]:
        """The reading of each row of a codebook in its keepers' own words; of another, of rows that say more."""
        whole = self.metadata is None or not self.metadata.interpreted
        found = []
        for name, row in self.rows.items():
            if row.omitted or (whole and not row.notes):
                continue
            facts = {"type": "category", **row.facts, **row.files}
            said = filter(None, (row.facts.get("type"), facts_in_words(name, facts)))
            found.append(RowReading(name, " · ".join(said), row.notes))
        return tuple(found)

    @property
    def not_read(self) -> str:
        """A sentence on what was not read of the codebook; empty where all was."""
        rows = [printable(each.column) for each in self.reading if each.unread]
        headings = () if self.metadata is None else self.metadata.unread
        said = [f"the headings {_some(headings)}"] if headings else []
        said += [f"what the rows of {_some(rows)} say in part"] if rows else []
        return f"Not read of the codebook: {'; '.join(said)}." if said else ""

    def to_yaml(self, folder: Path | None = None) -> str:
        """Return the schema file's text, with comments.

        Args:
            folder: The file's folder, if it is known: files beside the codebook are named where it is the same.
        """
        own = None if self.metadata is None else self.metadata.folder
        if folder is not None and own is not None and folder.resolve() == own.resolve():
            return replace(self, beside=True).to_yaml()
        source = "no codebook was given"
        if self.metadata is not None:
            source = f"the facts are from {printable(self.metadata.name)}"
        plain = self.schema.to_plain()
        begin = "".join(f"# {line}\n" for line in self.first_in_words.splitlines())
        lines = [*filter(None, [begin]), self.head.format(codebook=source), *self._remarks()]
        lines.append(yaml_text.dump({"doublure": plain["doublure"], "kind": plain["kind"]}))
        lines.append(self.unit + f"unit: {yaml_text.inline(plain['unit'])}\n" + self._whose())
        lines.append(_UNITS + f"units: {yaml_text.inline(plain['units'])}\n")
        further = {key: value for key, value in plain.items() if key not in _PLACED}
        lines += [yaml_text.dump(further)] if further else []
        return "\n".join([*lines, self.body(self)])

    @property
    def first_in_words(self) -> str:
        """The decisions of its owner that come first, as a list; empty where there is none."""
        return "\n".join(["Decide first:", *map(_listed, self.first)]) if self.first else ""

    def comments(self, name: str) -> list[str]:
        """Return the comments above a column: that the codebook has no row for it, or what no fact holds."""
        if self.metadata is None:
            return []
        row = self.rows.get(name)
        return ["# Not in the codebook."] if row is None else [f"# {note}" for note in (*row.notes, *row.decided)]

    def column(self, name: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a column's facts as the file has them: by the names of files where these lie beside it."""
        row = self.rows.get(name)
        return facts if row is None or not self.beside else {**facts, **row.files}

    def _remarks(self) -> list[str]:
        """Return what stands above the facts: the origin of metadata, and columns that only one side has."""
        if self.metadata is None:
            return []
        told = [_INFERRED] if self.metadata.inferred else []
        omitted = ", ".join(printable(name) for name, row in self.metadata.entries.items() if row.omitted)
        if omitted:
            text = f"Left out, as {printable(self.metadata.name)} says: {omitted}"
            told += [*(f"# {line}" for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False)), ""]
        return [*told, *_wrapped(self.not_read), *_wrapped(self.not_in_data)]

    def _whose(self) -> str:
        """Return the answers to whose records they are, as comments, where a table has a column named as an id."""
        answers = proposed_units(id_names(self.schema.columns)) if self.schema.only_columns else ()
        return "".join(f"# {answer}\n" for answer in answers)

    @property
    def not_in_data(self) -> str:
        """A sentence on columns that the codebook has and the data has not; empty where there are none."""
        if not self.unknown:
            return ""
        near = [(name, nearest_name(name, self.schema.columns)) for name in self.unknown[:_MOST_UNKNOWN]]
        named = [printable(name) + (f" (did you mean {printable(like)}?)" if like else "") for name, like in near]
        said = _some(named, len(self.unknown))
        return f"The codebook also describes columns that the data does not have: {said}."


def _wrapped(sentence: str) -> list[str]:
    """Return a sentence as comments of a file, with an empty line behind them."""
    lines = textwrap.wrap(sentence.removesuffix("."), _WIDTH, break_on_hyphens=False)
    return [*(f"# {line}" for line in lines), ""] if lines else []


def _listed(sentence: str) -> str:
    """Return a sentence as an entry of a list; lines of code, which are indented, as they are."""
    if sentence.startswith("  "):
        return f"  {sentence}"
    return "\n  ".join(textwrap.wrap(f"- {sentence}", _WIDTH, break_on_hyphens=False, break_long_words=False))


def _some(names: Sequence[str], every: int = 0) -> str:
    """Return the first of some names, and how many more there are."""
    more = max(every, len(names)) - len(names[:_MOST_UNKNOWN])
    return ", ".join(names[:_MOST_UNKNOWN]) + (f", and {more} more" if more else "")


def draft(
    data: Given | None = None,
    codebook: str | Path | None = None,
    kind: str | None = None,
    *,
    form: str = OWN,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_rows: int | None = None,
    root: str | None = None,
) -> Schema:
    """Draft a schema from a table's column names and storage types.

    Args:
        data: A path to a table, such as CSV, Parquet or Excel, or a DataFrame; for images, a path to NPZ, IDX, Parquet
            or a folder, or arrays.
            None: the codebook alone is drafted from.
        codebook: A file with public facts; see :mod:`doublure.drafting.metadata.codebook`.
        kind: Of which kind the data is; told by its form if left out, which cannot tell series.
        form: The form of the codebook, one of :data:`doublure.drafting.metadata.registry.FORMS`.
        encoding: Of a table's CSV files, if not UTF-8.
        delimiter: Between their fields, if not ``, ; tab |``.
        skip_rows: The number of lines, or rows of a sheet, above the header.
        root: Of related tables the one whose rows are the units, where names leave it open.

    Returns:
        A schema in which most facts are undeclared.

    Raises:
        DataError: The data cannot be read.
        SchemaError: A column's name cannot be used, a row of the codebook is malformed, or names leave a root open.

    Example:
        >>> schema = db.draft("people.csv")
        >>> schema.columns["age"].type, schema.undeclared[:2]
        ('integer', ('units', 'columns.age.missing'))
    """
    return drafted(
        data, codebook, kind, form=form, encoding=encoding, delimiter=delimiter, skip_rows=skip_rows, root=root
    ).schema


def drafted(
    data: Given | None = None,
    codebook: str | Path | None = None,
    kind: str | None = None,
    *,
    form: str = OWN,
    encoding: str | None = None,
    delimiter: str | None = None,
    skip_rows: int | None = None,
    root: str | None = None,
) -> Draft:
    """Draft a schema, with the comments that its file gets; see :func:`draft`."""
    described = None if codebook is None else read_metadata(codebook, form)
    if data is None:
        return _drafted_alone(described, kind)
    if kind is None:
        kind = "series" if described is not None and described.kind == "series" else kind_of(data)
    if kind not in KINDS:
        raise SchemaError("is not known", field="kind", remedy=f"use one of: {', '.join(KINDS)}")
    if described is not None and kind not in _OF_COLUMNS:
        raise SchemaError("describes columns of a table", field="codebook", remedy=f"leave it out for {kind}")
    asked = {"encoding": encoding, "delimiter": delimiter, "skip_rows": skip_rows}
    given: dict[str, Any] = {key: value for key, value in asked.items() if value is not None}
    if given and not issubclass(KINDS[kind].schema, TextForm):
        raise SchemaError("is for the files of tables and series", field=next(iter(given)), remedy="leave it out")
    said = {} if described is None else {key: described.whole[key] for key in KEYS if key in described.whole}
    keys = said | given
    if root is not None and DRAFTS[kind] is not _drafted_related:
        raise SchemaError("is one of several tables", field="root", remedy=f"leave it out for {kind}")
    again = {} if root is None else {"root": root}
    return DRAFTS[kind](data, described, keys | doubled_names(data, kind, keys), **again)


def redrafted(data: Given, described: DataDescription, made: Draft) -> Draft:
    """Draft again, with what has been said since of the same data.

    Args:
        data: The data.
        described: All that is said of it.
        made: The earlier draft.
    """
    own = made.schema.to_plain()
    keys = {key: own[key] for key in KEYS if key in own}
    return DRAFTS[made.schema.kind](data, described, keys, **made.again)


def _drafted_alone(described: DataDescription | None, kind: str | None) -> Draft:
    """Draft from metadata alone: the columns are those that it names."""
    if described is None:
        raise SettingError("are both missing", field="data and codebook", remedy="give one of them")
    if patterns := [name for name in described.entries if "*" in name]:
        place, remedy = described.entries[patterns[0]].place, "give the data, too, or a row for each column"
        raise SchemaError("is a pattern, and no data has the names", field=f"{place}, column", remedy=remedy)
    if kind is not None:
        described = replace(described, whole={**described.whole, "kind": kind})
    schema = described.schema()
    parts: dict[str, Any] = _ALONE[schema.kind]
    named = {name: described.entry(name, *SECTIONS) for name in schema.columns}
    rows = {name: row for name, row in named.items() if row is not None}
    return Draft(schema=schema, metadata=described, rows=rows, **parts)


def _drafted_table(data: Any, described: DataDescription | None, keys: Mapping[str, str]) -> Draft:
    source, suggested = opened(open_table, data, keys)  # which refuses arrays itself
    described = None if described is None else described.of_table(Path(source.name).name.partition(".")[0])
    for name in source.columns:
        try:
            check_name(name)
        except ValueError as error:
            head, _, remedy = str(error).partition("; ")
            raise SchemaError(head, field=source.name, remedy=remedy) from None
    stored, dtypes, proposals = stored_forms(source)
    indices, left = left_out(source)
    header = stored
    stored = {name: storage for name, storage in stored.items() if name not in indices}
    stored, rows = _described(stored, described)
    columns = {name: _column(name, storage, rows.get(name), dtypes.get(name)) for name, storage in stored.items()}
    top = {} if described is None else described.at_the_top()
    form, suggested = _form_told(source, suggested)
    schema = Schema.from_plain({**SKELETON, **form, **top, **keys, "columns": columns}, source.name)
    named = {name: row.files["values"] for name, row in rows.items() if "values" in row.files}
    return Draft(
        schema=schema,
        head=_HEAD,
        body=_columns,
        metadata=described,
        rows=rows,
        proposals=_asked(
            rows,
            _beside(rows, {name: each for name, each in proposals.items() if name in stored})
            | of_lists(schema.columns, named)
            | following_bounds(schema),
        ),
        suggested=suggested,
        left_out=left,
        stored=header,
        perhaps_series=_perhaps_series(stored, proposals, source),
        first=[] if (name := names_pictures(first_cells(source))) is None else [list_of_pictures(name)],
    )


def _perhaps_series(stored: Mapping[str, Storage], proposals: Mapping[str, Proposal], table: TableSource) -> bool:
    """Return whether columns are those of readings: one of moments with a clock, numbers, at most one of a meter."""
    parts = moment_parts(stored)
    if "hour" in parts:
        stored = {name: storage for name, storage in stored.items() if name not in parts.values()}
    numbers = {
        name
        for name, storage in stored.items()
        if storage in _NUMBERS or "decimal" in getattr(proposals.get(name), "keys", ())
    }
    forms = {name: _date_format(each) for name, each in proposals.items() if name not in numbers}
    moments = [name for name, storage in stored.items() if storage in ("date", "datetime") or forms.get(name)]
    if "hour" in parts and not moments:
        return bool(numbers) and len(stored.keys() - numbers) <= 1
    if len(moments) != 1:
        return False
    clock = clock_beside(moments[0], table)
    if clock is None and stored[moments[0]] != "datetime" and "h" not in (forms.get(moments[0]) or ""):
        return False
    named = {name for name in stored if is_id_name(name)}
    others = stored.keys() - numbers - {moments[0], clock}
    return bool(numbers - named - {clock}) and len(others | (named & numbers)) <= 1


def _described(
    stored: Mapping[str, Storage], described: DataDescription | None, *parts: str
) -> tuple[dict[str, Storage], dict[str, Entry]]:
    """Return the columns that are not left out, and the entries of those that have one."""
    found = {name: None if described is None else described.entry(name, *parts) for name in stored}
    rows = {name: row for name, row in found.items() if row is not None}
    kept = {name: storage for name, storage in stored.items() if name not in rows or not rows[name].omitted}
    return kept, rows


def _beside(rows: Mapping[str, Entry], proposals: Mapping[str, Proposal]) -> dict[str, Proposal]:
    """Return the proposals that contradict no codebook: of a column that one describes, a form that it leaves open."""
    found = {name: each for name, each in proposals.items() if _open(rows.get(name), each)}
    for name, each in proposals.items():
        said = {} if name in found else rows[name].facts
        column = each.column or {}
        form = {key: fact for key, fact in column.items() if key in _FORM_KEYS and key not in said}
        if form and said.get("type") == column["type"]:
            found[name] = replace(each, column={**rows[name].plain(), **form})
    return found


def _asked(rows: Mapping[str, Entry], proposals: Mapping[str, Proposal]) -> dict[str, Proposal]:
    """Return proposals with what the words of a codebook may mean, for a person to decide."""
    found = dict(proposals)
    for name, row in rows.items():
        if not row.asked or row.omitted:
            continue
        other = proposals.get(name)
        own = row.plain("category") if other is None or other.column is None else other.column
        why = row.because if other is None or other.column is None else f"{other.why}, and {row.because}"
        found[name] = Proposal(why=why, column={**own, **row.asked}, keys={} if other is None else other.keys)
    return found


_FORM_KEYS = ("written", "date_format", "format", "step")
"""Keys of a column that say how its cells are written."""


def _open(row: Entry | None, proposal: Proposal) -> bool:
    """Return whether a proposal adds to what the codebook says: one by name does where that is no more than a type."""
    if row is None or not row.facts:
        return True
    said = proposal.column or {}
    return proposal.by_name and row.facts.keys() <= {"type", "missing"} and said.get("type") != row.facts.get("type")


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
    for name, column in own["columns"].items():
        if column.get("missing") == UNDECLARED:
            del column["missing"]
        text += "".join(f"  {said}\n" for said in made.comments(name))
        text += f"  {yaml_text.inline(name)}: {yaml_text.inline(made.column(name, column))}\n"
        if (proposal := made.proposals.get(name)) is not None:
            text += f"  # {proposed_line(name, proposal)}\n"
    if rules := own.get("constraints"):
        return f"{text}\n{yaml_text.dump({'constraints': rules})}"
    likely = [rule for rule, _ in rules_for(made.schema.columns)]
    return text + "\n" + _ASKED + "".join(f"# {line}\n" for line in ["constraints:", *(likely or _RULES)])


def _drafted_images(data: Any, described: DataDescription | None, keys: Mapping[str, str]) -> Draft:
    source = open_images(data)
    source.check_form()
    plain: dict[str, Any] = {"doublure": 1, "kind": "images", "images": {}}
    if source.shape is not None:
        plain["images"] = {"shape": list(source.shape), "range": list(source.usual_range)}
        if source.stored is not None and source.stored.kind == "b":
            plain["images"]["dtype"] = "uint8"
    if source.labelled:
        plain["label"] = {"values": UNDECLARED}
    schema = Schema.from_plain(plain, source.name)
    return Draft(
        schema=schema,
        head=_IMAGES_HEAD,
        body=_pictures,
        unit=_IMAGES_UNIT,
        left_out=left_beside(source),
        first=label_wanted(source),
    )


def _pictures(made: Draft) -> str:
    plain = made.schema.to_plain()
    label = [_LABEL + f"label: {yaml_text.inline(plain['label'])}"] if "label" in plain else []
    about = (_RANGE if "range" in plain["images"] else "") + _IMAGES
    beside = [made.left_out.rstrip("\n")] if made.left_out else []
    return "\n".join([f"{about}images: {yaml_text.inline(plain['images'])}\n", *label, *beside]) + "\n"


def _drafted_series(data: Any, described: DataDescription | None, keys: Mapping[str, str]) -> Draft:
    """Draft from a table of readings, or from arrays: moments, numbers and texts have their places."""
    source, suggested = opened(open_series, data, keys)
    lengths: set[int] = set()
    columns: Mapping[str, str] = {}  # a channel, or an attribute, is of no type but these
    found: dict[str, Proposal] = {}
    if isinstance(source, ArraySource):
        columns, lengths = source.storage()
    elif isinstance(source, RowSource):
        stored, _, found = stored_forms(source.table)
        columns = {name: storage if storage in PLAIN else "text" for name, storage in stored.items()}
    columns, rows = _described(columns, described, *SECTIONS)
    top = {} if described is None else described.at_the_top()
    dates = [name for name, proposal in found.items() if columns.get(name) == "text" and _date_format(proposal)]
    moments = [name for name, storage in columns.items() if storage in ("date", "datetime")]
    form, suggested = _form_told(getattr(source, "table", None), suggested)
    plain: dict[str, Any] = {"doublure": 1, "kind": "series", **form, **top, **keys}
    plain |= {"series": {}, "channels": {}, "attributes": {}}
    if moments or dates:
        plain["series"] |= {"time": (moments or dates)[0], "stamped_from": _STAMPED_FROM}
        clock = clock_beside((moments or dates)[0], source.table) if isinstance(source, RowSource) else None
        plain["series"] |= {"time_of_day": clock} if clock is not None else {}
        if not moments:
            suggested |= {"date_format": _date_format(found[dates[0]])}
    table = TableForms.of(source.table, columns, plain["series"], rows) if isinstance(source, RowSource) else NO_FORMS
    if table.parts:
        plain["series"] |= {"time": JOINED, "stamped_from": _STAMPED_FROM}
    lengths = lengths or {*filter(None, (table.steps.length,))}
    if len(lengths) == 1:
        plain["series"] |= {"length": lengths.pop()}
    plain["series"] |= top.get("series", {})
    named = {plain["series"].get(key) for key in ("time", "time_of_day", "source")} | {plain.get("unit", {}).get("id")}
    for channel, steps in table.steps.channels.items():
        real = any(columns[step] == "real" for step in steps)
        plain["channels"][channel] = {"type": "real" if real else "integer"}
        if (same := found.get(steps[0])) is not None and all(found.get(step) == same for step in steps):
            found[channel] = same
    for name, storage in columns.items():
        if name in named | table.taken:
            continue
        if described is not None and name in rows:
            plain[_section(name, storage, rows[name], described)][name] = rows[name].plain(drafted_type(storage))
        elif table.wide and storage in _NUMBERS:  # a number beside steps is the row's, and so the series'
            plain["attributes"][name] = {"type": storage}
        elif storage in _NUMBERS or "decimal" in getattr(found.get(name), "keys", ()):
            plain["channels"][name] = {"type": storage if storage in _NUMBERS else "real"}
        elif storage in ("text", "boolean") and name not in dates:
            plain["attributes"][name] = {"type": drafted_type(storage)}
    kept = {*named, *table.taken, *plain["channels"], *plain["attributes"]}
    if not plain["channels"]:
        remedy = "give a column of numbers, or an array of them with an axis of steps"
        raise SchemaError("holds no numbers that could be channels", field=source.name, remedy=remedy)
    return Draft(
        schema=Schema.from_plain(plain, source.name),
        head=_SERIES_HEAD,
        body=_windows,
        left_out="".join(_NOT_OF_SERIES.format(name=yaml_text.inline(name)) for name in columns if name not in kept),
        metadata=described,
        rows=rows,
        unit=_SERIES_UNIT,
        proposals={name: each for name, each in found.items() if _open(rows.get(name), each)},
        suggested=suggested,
        first=table.told(source.name),
    )


def _section(name: str, storage: str, row: Entry, described: DataDescription) -> str:
    """Return the part of a schema of series that a described column belongs to."""
    said = (part for part in SECTIONS if described.entries.get(f"{part}.{name}") is row)
    return next(said, "channels" if row.facts.get("type", storage) in _NUMBERS else "attributes")


def _date_format(proposal: Proposal) -> str | None:
    """Return the form of dates that a proposal says."""
    return None if proposal.column is None else proposal.column.get("date_format")


def _form_told(table: TableSource | None, suggested: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a header tells of how its file is written, and what else is suggested: quoting may be of names."""
    told = dict({} if table is None else table.text_form)
    return {key: told[key] for key in told if key != "quoting"}, suggested | {
        key: told[key] for key in told if key == "quoting"
    }


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
    text += f"series: {yaml_text.inline(plain['series'])}\n\n" + made.left_out + _CHANNELS
    for under in ("channels", "attributes"):
        text += f"{under}:\n" if plain.get(under) else ""
        for name, column in plain.get(under, {}).items():
            text += "".join(f"  {said}\n" for said in made.comments(name))
            text += f"  {yaml_text.inline(name)}: {yaml_text.inline(made.column(name, column))}\n"
            if (proposal := made.proposals.get(name)) is not None:
                text += f"  # {series_line(name, proposal)}\n"
    if schema.series.time is not None:
        text += _CALENDAR if plain.get("attributes") else f"# attributes:\n{_CALENDAR}"
    return text


def _drafted_related(
    data: Any, described: DataDescription | None, keys: Mapping[str, str], root: str | None = None
) -> Draft:
    """Draft from several tables: which hangs on which is proposed by their headers, the rest is the codebook's.

    Of a child table, a column that the codebook has as an id is its key, where no name says which one is.

    A row of the codebook is named ``table.column``, or for a column of every table by the column alone.
    """
    source, suggested = opened(open_related, data, keys)
    rows: dict[str, Entry] = {}
    top = {} if described is None else described.at_the_top()
    told: Mapping[str, Mapping[str, Any]] = top.pop("tables", {})
    found = proposed({name: table.columns for name, table in source.tables.items()}, told, root)
    tables: dict[str, Any] = {}
    proposals: dict[str, Proposal] = {}
    every: dict[str, Storage] = {}
    for name in (found.root, *found.children):
        stored, dtypes, of_columns = stored_forms(source.tables[name])
        every |= {f"{name}.{own}": storage for own, storage in stored.items()}
        stored, own_rows = _described(stored, described, name)
        facts: dict[str, Any] = {"key": found.key}
        if name != found.root:
            link = found.children[name]
            ids = [own for own, entry in own_rows.items() if entry.facts.get("type") == "id"]
            key = link.key or next((own for own in ids if own != link.foreign_key), None)
            facts = {} if key is None else {"key": key}
            facts |= {"parent": link.parent, "foreign_key": link.foreign_key, "max_children": UNDECLARED}
            moments = [own for own, storage in stored.items() if storage in ("date", "datetime")]
            facts |= {"order": moments[0]} if moments else {}
        facts |= told.get(name, {})
        own_keys = {facts.get("key"), facts.get("foreign_key")}
        columns = {
            own: {"type": "id"} if own in own_keys else _column(own, each, own_rows.get(own), dtypes.get(own))
            for own, each in stored.items()
        }
        tables[name] = facts | {"columns": columns}
        rows |= {f"{name}.{own}": entry for own, entry in own_rows.items()}
        proposals |= {
            f"{name}.{own}": each
            for own, each in of_columns.items()
            if own not in own_keys and _open(own_rows.get(own), each)
        }
        proposals |= {f"{name}.{own}": each for own, each in _asked(own_rows, {}).items() if own not in own_keys}
    form, suggested = _form_told(source.tables[found.root], suggested)
    plain = {
        "doublure": 1,
        "kind": "relational",
        "unit": {"name": row_of(found.root)},
        **form,
        **top,
        **keys,
        "tables": tables,
    }
    schema = Schema.from_plain(plain, source.name)
    return Draft(
        schema=schema,
        head=_RELATED_HEAD,
        body=_related,
        unit=_RELATED_UNIT,
        metadata=described,
        rows=rows,
        proposals=following_bounds(schema) | proposals,
        suggested=suggested,
        again={"root": found.root},
        stored=every,
        others=found.others,
        named=rows_named(
            {name: source.tables[name].columns for name in tables},
            {name: (facts.get("key"), facts.get("foreign_key")) for name, facts in tables.items()},
            {} if described is None else described.named,
        ),
    )


def _left_out(others: Mapping[str, str]) -> str:
    """Return what is to be said of tables that do not hang on the root."""
    public = [
        f"#   {shown}: {{file: {shown}.csv, key: {yaml_text.inline(key)}}}"
        for name, key in others.items()
        if key and (shown := yaml_text.inline(name))
    ]
    found = [_PUBLIC, *public] if public else []
    found += [
        f"# {yaml_text.inline(name)} hangs on no other table, and is left out."
        for name, key in others.items()
        if not key
    ]
    return "".join(f"{line}\n" for line in found)


def _related(made: Draft) -> str:
    text = made.schema.to_yaml()
    rules = made.schema.to_plain().get("constraints")
    text = text if rules is None else text[: text.rindex("\nconstraints:") + 1]
    names, lines, tables = iter(made.schema.columns), list[str](), iter(made.schema.to_plain()["tables"].items())
    for line in text[text.index("\ntables:") + 1 :].splitlines():
        if not line.startswith(_OF_A_COLUMN):
            if lines and lines[-1].startswith(_MOST) and not line.startswith(_ORDER):
                lines.append(_NO_ORDER)
            if line == _COLUMNS:
                table, own = next(tables)
                lines += _links(made.named.get(table, {}), own)
            lines.append(line)
            continue
        name = next(names)  # one line a column, in the schema's order
        lines += [_OF_A_COLUMN + said for said in made.comments(name)]
        lines.append(line)
        if (proposal := made.proposals.get(name)) is not None:
            lines.append(f"{_OF_A_COLUMN}# {proposed_line(name.split('.', 1)[1], proposal)}")
    told = "" if rules is None else "\n" + yaml_text.dump({"constraints": rules})
    return _form_of(made) + _RELATED + _left_out(made.others) + "\n".join(lines) + "\n" + told


def _links(named: Mapping[str, str], table: Mapping[str, Any]) -> list[str]:
    """Return what is to be said of columns that may name rows, unless the schema says it."""
    words = ", ".join(
        f"{yaml_text.inline(column)}: {{to: {yaml_text.inline(to)}}}"
        for column, to in named.items()
        if column not in table.get("links", {})
    )
    return [_LINKS, f"    # links: {{{words}}}"] if words else []


_ALONE: ByKind[dict[str, Any]] = ByKind(
    "draft",
    table={"head": _HEAD, "body": _columns},
    images={"head": _IMAGES_HEAD, "body": _pictures, "unit": _IMAGES_UNIT},
    series={"head": _SERIES_HEAD, "body": _windows, "unit": _SERIES_UNIT},
    relational={"head": _RELATED_HEAD, "body": _related, "unit": _RELATED_UNIT},
)
"""Kind -> what a draft says beside a schema."""
DRAFTS: ByKind[Callable[..., Draft]] = ByKind(
    "draft", table=_drafted_table, images=_drafted_images, series=_drafted_series, relational=_drafted_related
)


def _column(name: str, storage: str, entry: Entry | None, dtype: Dtype | None) -> dict[str, Any]:
    type_ = drafted_type(storage)
    if entry is None:
        return dict(with_dtype({"type": type_}, dtype))
    return dict(with_dtype(entry.column(name, type_), None if "dtype" in entry.facts else dtype))
