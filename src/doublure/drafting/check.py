"""Check a schema for missing facts, field by field, with YAML to paste.

The check reads the schema, and of the data the header and the form of the first cells, as a draft does: it proposes
what a draft proposes. One exception: readings that no column tells apart are read, because their owner should know
whether two of them have the same moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from doublure.data.images.opening import open_images
from doublure.data.opening import Source
from doublure.data.relational import open_related
from doublure.data.series.opening import open_series
from doublure.data.series.rows import COINCIDING, RowSource
from doublure.data.series.sources import SeriesSource, series_schema
from doublure.data.tables.header import RENAME, without_name
from doublure.data.tables.opening import TableSource, open_table
from doublure.drafting.asks import asks_of
from doublure.drafting.codebook import SECTIONS
from doublure.drafting.misfits import MISFITS, not_listed
from doublure.drafting.proposals import (
    Proposal,
    following_bounds,
    key_line,
    named_proposal,
    proposed_line,
    series_line,
)
from doublure.drafting.series_forms import SHARED, repeats, told_of_unit
from doublure.drafting.storage_types import Storage, first_cells
from doublure.drafting.stored_forms import drafted_type, stored_forms
from doublure.drafting.whose import OF_RECORDS, unit_yaml
from doublure.errors import DataError, counted, printable
from doublure.schema.columns import Column, unmodelled_types
from doublure.schema.fact_states import UNDECLARED, Learn
from doublure.schema.images import LABEL, ImageSchema
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.rules.at_most import AtMost, order_columns
from doublure.schema.rules.rule_set import goes_with
from doublure.schema.schema import Schema
from doublure.schema.series import ABOUT, CHANNELS, CLOCK, SERIES, STATES, STEP, VALUES, SeriesSchema
from doublure.schema.unit import UNIT_ID
from doublure.support import yaml12 as yaml_text
from doublure.support.guessing import free_word, nearest_name
from doublure.support.views import shorten

LEARN_EPSILON = 0.05
_LEARN_UNITS = "units: {learn: 0.01, magnitude: 10000}"
_MANY_VALUES = 200
_MOST_GUESSES = 20  # each looks through the whole header
_DECLARE = {
    ("images", "shape"): "shape: [HEIGHT, WIDTH, CHANNELS]",
    ("series", "length"): "length: STEPS",
    ("series", "step"): "step: DURATION",
    ("", "max_children"): "max_children: NUMBER",
}
_KEYS = ("images", "label", "series")
_SECTIONS = ("columns", *SECTIONS)
_TABLES = "tables"
_MISSING = "missing: TRUE_FALSE_OR_LIST"
_OF_FILE = (UNIT_ID, "units")
_STORED: Mapping[str, Storage] = {"category": "text", "integer": "integer"}
"""Column type -> the storage type that a draft makes it of, where a name may say more."""

BLOCKING = ("undeclared", "absent", "doubled")
"""The kinds of finding that stand in the way of a plan, or of a fit."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An open decision or a notice about a schema.

    Attributes:
        kind: ``undeclared``: a fact is open. ``absent``: the data lacks a column. ``doubled``: the data has it twice.
            ``ignored``: the data has a column that the schema does not name. ``ask``: something that no plan needs and
            much hangs on. ``unit``: what a unit is by the form of its column, which is said first. ``note``: nothing
            to decide.
        path: The place in the schema, or the column of the data.
        message: One line.
        declare: The YAML that declares the fact, with words in capitals to replace; None if there is nothing to.
        learn: The YAML that buys it; None where it cannot be bought.
        instead: The line to paste for the whole column, where its name proposes another type, as a draft does.
        beside: The line that a draft proposes below it, where its first cells have a form.
    """

    kind: Literal["undeclared", "absent", "doubled", "ignored", "ask", "unit", "note"]
    path: str
    message: str
    declare: str | None = None
    learn: str | None = None
    instead: str | None = None
    beside: str | None = None


@dataclass(frozen=True, kw_only=True)
class Check:
    """The findings about a schema.

    Attributes:
        findings: In the schema's order; notes last.
        learn_epsilon: ε of all facts that are to be learned so far.
        parts: What facts belong to, as plain data, to write the lines to paste: the key of the file that they stand
            under -> column -> facts; under no key, what is a key of the file itself.
        cells_to_come: Whether the data has cells that ``--values`` lists, of which a check looks at first ones alone.
        moments_read: Whether readings were looked at, as no column tells them apart.
    """

    findings: tuple[Finding, ...]
    learn_epsilon: float
    parts: dict[str, dict[str, dict[str, Any]]]
    cells_to_come: bool = False
    moments_read: bool = False

    @property
    def ok(self) -> bool:
        """Whether a plan can be made and the data's header fits."""
        return not any(finding.kind in BLOCKING for finding in self.findings)

    def to_plain(self) -> dict[str, Any]:
        """Return the check as JSON can hold it."""
        findings = [asdict(finding) for finding in self.findings]
        return {"ok": self.ok, "learn_epsilon": self.learn_epsilon, "findings": findings}

    def to_yaml(self) -> str:
        """Return the check as YAML: comments for people, and lines to paste over the schema's."""
        open_facts = [finding for finding in self.findings if finding.kind == "undeclared"]
        first = [f"# first: {each.path}: {each.message}" for each in self.findings if each.kind == "unit"]
        lines = [*first, f"# {counted(len(open_facts), 'undeclared fact')}"]
        if open_facts:
            lines[-1] += ". For each, paste one of the lines in place of the schema's:"
            lines += ["#   declare it (replace the words in CAPITALS by what is public knowledge),"]
            lines += ["#   buy it (uncomment the line; the price is out of the plan's epsilon and up to you),"]
            lines += ["#   or leave it undeclared: then a plan refuses, naming it"]
        empty = [finding for finding in open_facts if finding.path.endswith(".missing")]
        if (count := len(empty)) > 1:
            lines.append(f"# {count} columns do not say whether cells may be empty; where none may, one line does:")
            lines.append("#   defaults: {missing: false}")
        lines += self._of_file(open_facts)
        by_part: dict[tuple[str, str], list[Finding]] = {}
        for finding in open_facts:
            if finding.path not in _OF_FILE:
                by_part.setdefault(_part_of(finding.path), []).append(finding)
        for under in self.parts:
            mine = {name: its_facts for (key, name), its_facts in by_part.items() if key == under}
            if under == _TABLES:  # a line by itself: the table's own, pasted whole, would lose its columns
                for name, its_facts in mine.items():
                    lines += [f"{_TABLES}.{name}:", *(f"  {finding.declare}" for finding in its_facts)]
                continue
            lines += [f"{under}:"] if mine and under else []
            for name, its_facts in mine.items():
                lines += self._lines(under, name, its_facts)
        rest = [finding for finding in self.findings if finding.kind not in ("undeclared", "unit")]
        for finding in self._folded(rest):
            lines.append(f"# {finding.kind}: {finding.path}: {finding.message}")
            lines += [] if finding.declare is None else [f"#   {finding.declare}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _folded(findings: Sequence[Finding]) -> list[Finding]:
        """Return the findings with those that are ignored for one reason as one, which stands last."""
        by_reason: dict[str, list[str]] = {}
        for finding in findings:
            if finding.kind == "ignored":
                by_reason.setdefault(finding.message, []).append(finding.path)
        folded = [Finding(kind="ignored", path=shorten(names), message=reason) for reason, names in by_reason.items()]
        return [*(finding for finding in findings if finding.kind != "ignored"), *folded]

    def _of_file(self, open_facts: Sequence[Finding]) -> list[str]:
        """Return the lines of what is a key of the file itself, each with its alternative."""
        own = [finding for finding in open_facts if finding.path in _OF_FILE]
        return [line for finding in own for line in (f"{finding.declare}", f"# {finding.learn or OF_RECORDS}")]

    def _lines(self, under: str, name: str, findings: Sequence[Finding]) -> list[str]:
        """Return a part's line with its open facts to declare, and the same with what can be bought."""
        head, column = f"{yaml_text.inline(name)}: ", self.parts[under][name]
        declared, bought = dict(column), dict(column)
        for finding in findings:
            if finding.declare is not None:
                declared |= yaml_text.parse(finding.declare, "declare")
                bought |= yaml_text.parse("{" + (finding.learn or finding.declare) + "}", "learn")
        room = "  " if under else ""
        instead = next((finding.instead for finding in findings if finding.instead), None)
        first = f"{room}{head}{yaml_text.inline(declared)}"
        lines = [first] if instead is None else [room + instead, f"{room}# {first.strip()}  # if not"]
        if any(finding.learn for finding in findings):
            lines.append(f"{room}# {head}{yaml_text.inline(bought)}")
        return [*lines, *(f"{room}# {finding.beside}" for finding in findings[:1] if finding.beside)]


def check(
    schema: Schema | str | Path, data: str | Path | pd.DataFrame | Mapping[str, pd.DataFrame] | None = None
) -> Check:
    """Say what a schema still lacks, and whether the data's header fits it.

    Of cells the form of the first ones is looked at, as by a draft; and of readings of series that no column and no
    rule keeps apart, whether two have one moment.

    Args:
        schema: A schema or its file.
        data: A path, a DataFrame, arrays, or a mapping of tables.

    Raises:
        SchemaError: The file is not a schema.
        DataError: The data's container or header cannot be read.

    Example:
        >>> found = db.check("people.schema.yaml", "people.csv")
        >>> found.ok
        True
    """
    schema = schema if isinstance(schema, Schema) else Schema.load(schema)
    seen = () if data is None else HEADERS[schema.kind](schema, data)
    forms = {} if data is None else _forms(schema, data)
    unit = () if data is None else _unit_by_form(schema, data)
    findings = [*unit, *_undeclared(schema, forms), *seen, *_asks(schema), *_asked_by_form(schema, forms)]
    findings += _notes(schema)
    plain = schema.to_plain()
    return Check(
        findings=tuple(findings),
        learn_epsilon=round(sum(question.epsilon for question in schema.questions), 10),
        parts={"": {key: plain[key] for key in _KEYS if key in plain}}
        | {key: plain[key] for key in _SECTIONS if key in plain}
        | _of_tables(plain.get(_TABLES, {})),
        cells_to_come=data is not None and MISFITS[schema.kind] is not not_listed,
        moments_read=data is not None and bool(schema.cautions),
    )


def _of_tables(tables: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what facts of related tables belong to: each table's own, and those of its columns."""
    own = {name: {key: fact for key, fact in table.items() if key != "columns"} for name, table in tables.items()}
    return {_TABLES: own} | {f"{_TABLES}.{name}.columns": table["columns"] for name, table in tables.items()}


def _forms(schema: Schema, data: Any) -> dict[str, Proposal]:
    """Return what a draft of the data proposes by the form of first cells, for columns that are as it made them."""
    found: dict[str, Proposal] = {}
    for table, source in TABLES[schema.kind](schema, data).items():
        try:
            stored, _, proposals = stored_forms(source)
        except DataError:  # a header or first records that cannot be read, of which the header's findings tell
            continue
        for name, proposal in proposals.items():
            column = schema.columns.get(f"{table}.{name}" if table else name)
            if column is not None and not proposal.by_name and column.shown_type == drafted_type(stored[name]):
                found[f"{table}.{name}" if table else name] = proposal
    return found


def _unit_by_form(schema: Schema, data: Any) -> Iterator[Finding]:
    """Yield what a unit is by the first cells of the column that names it, where nearly every row has another."""
    table = TABLES[schema.kind](schema, data).get("")
    if table is None:
        return
    try:
        first = first_cells(table)
    except DataError:  # of which the header's findings tell
        return
    of_series = not schema.only_columns
    readings = of_series and bool({*table.columns} & {*getattr(schema, "channels", ())})
    if schema.unit.id in first:
        record = "reading" if readings else schema.record
        if (message := told_of_unit(schema.unit, first[schema.unit.id], record)) is not None:
            yield Finding(kind="unit" if of_series else "note", path=UNIT_ID, message=message)
    elif of_series and not (readings or schema.unit.each_record):
        windows = series_schema(schema).series
        if windows.source is None and windows.time in first and repeats(first[windows.time]):
            yield Finding(kind="unit", path=UNIT_ID, message=SHARED.format(time=printable(windows.time)))


def _related_tables(schema: Schema, data: Any) -> Mapping[str, TableSource]:
    return open_related(data, schema.written).tables


def _readings(schema: Schema, data: Any) -> Mapping[str, TableSource]:
    source = open_series(data, schema.written)
    return {"": source.table} if isinstance(source, RowSource) else {}


TABLES: ByKind[Callable[[Schema, Any], Mapping[str, TableSource]]] = ByKind(
    "look at first cells",
    table=lambda schema, data: {"": open_table(data, schema.written)},
    visits=lambda schema, data: {"": open_table(data, schema.written)},
    relational=_related_tables,
    series=_readings,
    images=lambda schema, data: {},
)


def _asked_by_form(schema: Schema, forms: Mapping[str, Proposal]) -> Iterator[Finding]:
    """Yield what the form of cells asks: marks in numbers, and whole numbers that are dates and declared as numbers."""
    plain = schema.to_plain()
    keys = {key: (value, each.why) for each in forms.values() for key, value in each.keys.items() if key not in plain}
    for key, (value, why) in keys.items():
        yield Finding(kind="ask", path=key, message=f"add it if {why}", declare=f"{key}: {yaml_text.inline(value)}")
    for name, proposal in forms.items():
        path = schema.path_of(name)
        open_facts = any(undeclared.startswith(f"{path}.") for undeclared in schema.undeclared)
        if schema.columns[name].plain and "date_format" in (proposal.column or {}) and not open_facts:
            message = f"if {proposal.why}, declare it so: as numbers, most that are drawn are no date"
            line = proposed_line(name.rpartition(".")[2], proposal).partition("  # ")[0]
            yield Finding(kind="ask", path=printable(path), message=message, declare=line)


def _undeclared(schema: Schema, forms: Mapping[str, Proposal]) -> Iterator[Finding]:
    units = schema.units
    if isinstance(units, Learn) and units.magnitude is None:
        message = "is learned, and its public order of magnitude is not given"
        learn = f"units: {{learn: {units.learn:g}, magnitude: 10000}}"
        yield Finding(kind="undeclared", path="units", message=message, declare="units: NUMBER", learn=learn)
    columns = {schema.path_of(name): column for name, column in schema.columns.items()}
    shown = {schema.path_of(name): name for name in schema.columns}
    following = {schema.path_of(name): each for name, each in following_bounds(schema).items()}
    for path in schema.undeclared:
        if path == UNIT_ID:
            message = (
                f"{_listed(schema.open_ids)}, and unit.id does not say whose; name it there, or protect single records"
            )
            yield Finding(kind="undeclared", path=path, message=message, declare=unit_yaml(schema.open_ids[0]))
            continue
        if path == "units":
            message = f"how many units there are ({printable(schema.unit.name)}) is undeclared; declare it or learn it"
            yield Finding(kind="undeclared", path=path, message=message, declare="units: NUMBER", learn=_LEARN_UNITS)
            continue
        (under, name), fact = _part_of(path), path.rpartition(".")[2]
        column = columns.get(path.rpartition(".")[0])
        proposal = None if column is None else _proposed(column, name)
        made = proposal is not None and (proposal.column is None or proposal.column["type"] in unmodelled_types())
        price = None if column is None or made else _price(column, fact, derived=name in schema.derived)
        part = under.rpartition(".")[2].removesuffix("s") or "label"
        out = "" if column is None else f", or take the {part} out"
        ways = f"declare it{', learn it' if price else ''}{out}"
        likely = following.get(path.rpartition(".")[0]) if fact == "bounds" else None
        if likely is not None:
            ways = f"declare it as proposed, if {likely.why}"
        yield Finding(
            kind="undeclared",
            path=path,
            message=f"is undeclared; {ways}",
            declare=f"bounds: {yaml_text.inline(likely.column['bounds'])}"
            if likely is not None and likely.column is not None
            else _DECLARE.get(("" if under == _TABLES else name, fact), _MISSING)
            if column is None
            else column.placeholder(fact),
            learn=price,
            instead=None if column is None or proposal is None else _instead(name, column, proposal, under),
            beside=_beside(name, column, forms.get(shown.get(path.rpartition(".")[0], "")), under),
        )


def _proposed(column: Column, name: str) -> Proposal | None:
    """Return what a column's name proposes beside its type, where its values are still undecided."""
    storage, values = _STORED.get(column.shown_type), column.fact("values") or column.fact("bounds")
    return named_proposal(name, storage) if storage is not None and values == UNDECLARED else None


def _instead(name: str, column: Column, proposal: Proposal, under: str) -> str:
    """Return a proposal as the line to paste, with what is said of the column already; as a comment, if it has none."""
    if proposal.column is None:
        return f"# take {yaml_text.inline(name)} out, if {proposal.why}"
    if proposal.column["type"] in unmodelled_types():
        if under in SECTIONS:
            return f"# {key_line(name, proposal.why)}"
        own = column.model_dump(mode="json", exclude_defaults=True, include={"description"})
    else:
        own = yaml_text.parse(_MISSING, "missing")
        own |= column.model_dump(mode="json", exclude_defaults=True, include={"missing", "roles", "description"})
    return proposed_line(name, replace(proposal, column={**proposal.column, **own}))


def _beside(name: str, column: Column | None, proposal: Proposal | None, under: str) -> str | None:
    """Return a proposal as the comment of a draft, with what is said of the column; None where it says no more."""
    if column is None or proposal is None:
        return None
    if under in SECTIONS:
        return series_line(name, proposal)
    if proposal.column is None:
        return proposed_line(name, proposal)
    own = column.model_dump(mode="json", exclude_defaults=True)
    if proposal.column["type"] != column.shown_type:
        own = {key: own[key] for key in ("missing", "roles", "description") if key in own}
    own = {key: fact for key, fact in own.items() if fact != UNDECLARED or key not in proposal.column}
    if proposal.column["type"] in unmodelled_types():
        own.pop("missing", None)
    said = {**proposal.column, **own}
    return (
        None
        if said.items() <= column.model_dump(mode="json").items()
        else proposed_line(name, replace(proposal, column=said))
    )


def _price(column: Column, fact: str, *, derived: bool) -> str | None:
    """Return the YAML that buys a fact; None where it cannot be bought."""
    if derived or not column.learnable(fact):
        return None
    other = f", other: {free_word(column.missing_tokens)}" if fact == "values" and column.fallback is None else ""
    return f"{fact}: {{learn: {LEARN_EPSILON:g}}}{other}"


def _part_of(path: str) -> tuple[str, str]:
    """Return the key and the column of a path such as ``columns.a.b.bounds``, whose name may hold dots.

    Of ``images.shape`` that is no key and ``images``, which is a key itself.
    """
    part = path.rpartition(".")[0]
    under, _, name = part.partition(".")
    if under == _TABLES:  # tables.T.columns.C, or a table's own fact
        table, columns, column = name.partition(f".{_SECTIONS[0]}.")
        return (f"{_TABLES}.{table}{columns[:-1]}", column) if columns else (_TABLES, table)
    return (under, name) if under in _SECTIONS else ("", part)


def _header(schema: Schema, data: str | Path | pd.DataFrame) -> Iterator[Finding]:
    source = open_table(data, schema.written)
    names = Counter(source.columns)
    extra = [name for name in names if name not in schema.columns]
    guesses = 0
    for name in schema.columns:
        if names[name] == 0:
            near = nearest_name(name, extra) if guesses < _MOST_GUESSES else None
            guesses += 1
            hint = f"; did you mean {printable(near)}" if near else ""
            yield Finding(kind="absent", path=printable(name), message=f"the data has no such column{hint}")
        elif names[name] > 1:
            message = f"stands more than once in the data's header; {RENAME}"
            yield Finding(kind="doubled", path=printable(name), message=message)
    if all(names[name] == 1 for name in schema.columns):
        yield from _misfit(source, schema)  # of another file of several
    for name in extra:
        message = "the data has it and the schema does not; it will not be read"
        yield Finding(kind="ignored", path=printable(name), message=message)
    if source.unnamed:
        message = f"{without_name(source.unnamed)}, such as an index that pandas wrote, and will not be read"
        yield Finding(kind="ignored", path=source.name, message=message)


def _misfit(source: Source, schema: Schema) -> Iterator[Finding]:
    try:
        source.check(schema)
    except DataError as error:
        message = error.message if error.remedy is None else f"{error.message}; {error.remedy}"
        yield Finding(kind="absent", path=error.field or source.name, message=message)


def _container(schema: Schema, data: Any) -> Iterator[Finding]:
    source = open_images(data)
    if "images.shape" not in schema.undeclared:
        yield from _misfit(source, schema)
    low, high = source.usual_range
    given, type_ = ImageSchema.of(schema).images.range, f"the data holds numbers of type {source.stored}"
    if given == (0, 255) != (low, high):
        message = f"{type_}; mind that they go from 0 to 255, not {low} to {high}"
        yield Finding(kind="note", path="images.range", message=message)
    elif given == (0, 1) and source.stored is not None and source.stored.kind != "b":
        message = f"{type_}; note that they go from 0 to 1: values outside become black or white"
        yield Finding(kind="note", path="images.range", message=message)
    if source.labelled and LABEL not in schema.columns:
        yield Finding(kind="ignored", path=LABEL, message="the data has labels and the schema does not")
    described = ImageSchema.of(schema)
    known = {*described.named_beside, *(described.label.attributes if described.label else ())}
    for name in source.beside:
        if name not in known:
            message = "the data has it and the schema does not; declare it under attributes, or it will not be read"
            yield Finding(kind="ignored", path=printable(name), message=message)


def _series_header(schema: Schema, data: Any) -> Iterator[Finding]:
    source, described = open_series(data, schema.written), series_schema(schema)
    if not {"series.length", "series.step"} & set(schema.undeclared):
        yield from _misfit(source, schema)
    if _coincide(source, described):
        yield Finding(kind="unit", path=described.series.time or "", message=COINCIDING)
    windows = described.series
    known = {
        *schema.columns,
        schema.unit.id,
        windows.source,
        windows.time,
        windows.time_of_day,
        SERIES,
        STEP,
        CLOCK,
        VALUES,
        CHANNELS,
        *(f"{STATES}{name}" for name in described.states),
        *ABOUT,
    }
    for name in source.names:
        if name not in known and name.rpartition("_")[0] not in described.channels:
            message = "the data has it and the schema does not; it will not be read"
            yield Finding(kind="ignored", path=printable(name), message=message)


def _coincide(source: SeriesSource, schema: SeriesSchema) -> bool:
    """Whether readings have one moment that nothing tells apart; of data that cannot be read yet, no."""
    try:
        return not schema.undeclared and source.coincide(schema)
    except DataError:
        return False


def _related_header(schema: Schema, data: Any) -> Iterator[Finding]:
    source, described = open_related(data, schema.written), RelationalSchema.of(schema)
    yield from _misfit(source, schema)
    for name, table in source.tables.items():
        known = described.tables[name].columns if name in described.tables else None
        message = "the data has it and the schema does not; it will not be read"
        if known is None:
            yield Finding(kind="ignored", path=printable(name), message=message)
            continue
        for own in table.columns:
            if own not in known:
                yield Finding(kind="ignored", path=printable(f"{name}.{own}"), message=message)


HEADERS: ByKind[Callable[[Schema, Any], Iterator[Finding]]] = ByKind(
    "check of a header",
    table=_header,
    images=_container,
    series=_series_header,
    relational=_related_header,
    visits=_header,
)


def _asks(schema: Schema) -> Iterator[Finding]:
    for ask in asks_of(schema):
        yield Finding(kind="ask", path=ask.path, message=ask.message, declare=ask.declare)
    for path, message in schema.cautions:
        yield Finding(kind="ask", path=path, message=message)


def _notes(schema: Schema) -> Iterator[Finding]:
    if schema.misfit == "coerce":
        message = (
            "data that does not fit counts as what a public rule says, or is left out, and no message says how much"
        )
        yield Finding(kind="note", path="misfit", message=message)
    questions = schema.questions
    if questions:
        total = sum(question.epsilon for question in questions)
        learned = f"{counted(len(questions), 'fact')} {'is' if len(questions) == 1 else 'are'} learned"
        message = f"{learned}, for {total:g} of the plan's epsilon"
        yield Finding(kind="note", path="columns" if schema.only_columns else "schema", message=message)
    if schema.unit.each_record:
        name = printable(schema.unit.name)
        message = f"each {name} is protected alone: k of them together have k times the plan's epsilon"
        yield Finding(kind="note", path=UNIT_ID, message=message)
    elif schema.unit.id is None and not (schema.one_record or schema.open_ids):
        name = printable(schema.unit.name)
        message = (
            f"each record is treated as a different {name}. If one {name} can have several records, set unit.id to the "
            "column that identifies them"
        )
        yield Finding(kind="note", path=UNIT_ID, message=message)
    yield from _missing_orders(schema)
    if unshared := schema.unshared:
        are, its = schema.unshared_in_words
        message = (
            f"{are} without shares: {its} values are as frequent as a method's own counts say; methods without counts "
            "draw them equally often; declare or learn shares"
        )
        yield Finding(
            kind="note", path=", ".join(printable(schema.path_of(name)) for name in unshared), message=message
        )
    for name, column in schema.columns.items():
        for message in _notes_on(column):
            yield Finding(kind="note", path=printable(schema.path_of(name)), message=message)


def _missing_orders(schema: Schema) -> Iterator[Finding]:
    """Yield the orders that follow from computed columns' bounds and that no rule declares."""
    rules = [rule for rule in getattr(schema, "constraints", ()) if {*rule.names} <= {*schema.columns}]
    declared = dict(order_columns(rules, schema.columns))
    for ends in filter(None, (rule.ordered_ends(schema.columns) for rule in rules)):
        low, high = map(printable, ends)
        order = AtMost(at_most=ends)
        if ends[0] not in declared.get(ends[1], ()) and goes_with(order, rules, schema.columns):
            message = (
                f"{low} is at most {high}, as what lies between them is never negative; add "
                f"{{at_most: [{low}, {high}]}}: without it, how far they are apart is mostly noise"
            )
            yield Finding(kind="note", path="constraints", message=message)


def _notes_on(column: Column) -> Iterator[str]:
    size = len(column.domain)
    if size > _MANY_VALUES and not column.level_numbers:  # groups are counted where codes are rare
        yield f"has {size} values, and noise hides rare ones: list those that are common, and set other"
    if column.modelled and not column.unit:
        yield (
            "has no precision or step, so numbers have up to 12 digits and hardly one repeats, as prices do; add "
            "precision: 2 for two decimals"
        )
    yield from column.notes()
    if column.grid is not None and column.plain:
        for token in column.missing_tokens:
            if _inside(token, column.grid):
                yield f"{printable(token)} means missing and lies within bounds, so it may also be sampled as a number"


def _listed(ids: Sequence[str]) -> str:
    return f"{printable(ids[0])} is an id" if len(ids) == 1 else f"{', '.join(map(printable, ids))} are ids"


def _inside(token: str, bounds: tuple[float, float]) -> bool:
    try:
        return bounds[0] <= float(token) <= bounds[1]
    except ValueError:
        return False
