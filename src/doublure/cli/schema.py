"""``doublure schema draft|check``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from doublure.cli.options import PLACE, Config, Force, InDatabase, Json, OfRows
from doublure.cli.terminal import VerbResult, ask_in_terminal, say_in_terminal
from doublure.cli.verb import VerbApp
from doublure.errors import GateFailed, SettingError, counted, printable

if TYPE_CHECKING:
    import pandas as pd

    from doublure.drafting.check import Check
    from doublure.drafting.draft import Draft
    from doublure.drafting.misfits import MisfitReason
    from doublure.drafting.relations import OpenRoot
    from doublure.schema import Schema

ASKED_FOR = ("table", "relational")
"""The kinds of data whose columns can be asked for."""


def register(app: typer.Typer) -> None:
    """Add the verb."""
    group = VerbApp(help="Describe what is public about the data.")
    group.command("draft")(draft)
    group.command("check")(check)
    group.command("codebook")(codebook)
    app.add_typer(group, name="schema")


def draft(
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the schema.")],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar=PLACE,
            help="A table (CSV, Parquet, Excel, …), images, series, a folder, or the URL of a database; left out, "
            "metadata alone is read.",
        ),
    ] = None,
    codebook: Annotated[
        Path | None, typer.Option(help="A codebook CSV: column,type,values,lower,upper,missing,…")
    ] = None,
    metadata: Annotated[
        tuple[str, Path] | None,
        typer.Option("--from", metavar="FORM FILE", help="Metadata in another form: {forms}."),
    ] = None,
    ask: Annotated[
        bool, typer.Option("--ask", help="Ask here for what is still open, column by column; shows no cell.")
    ] = False,
    kind: Annotated[str | None, typer.Option(help="{kinds}; told by the form if not series.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of CSV files, such as latin-1; UTF-8 if left out.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="Between fields; told by the header if left out.")] = None,
    skip_rows: Annotated[int | None, typer.Option(min=1, help="Lines, or rows of a sheet, above the header.")] = None,
    root: Annotated[
        str | None,
        typer.Option(help="Of related tables the one with one row for each unit, where names leave it open."),
    ] = None,
    table: InDatabase = None,
    query: OfRows = None,
    force: Force = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Draft a schema from a header and a codebook.

    Names and storage types come from the data, the rest from the codebook; what neither knows comes back undeclared.
    """
    from functools import partial

    from doublure.drafting.draft import drafted
    from doublure.drafting.metadata.registry import OWN
    from doublure.drafting.relations import OpenRoot
    from doublure.support.files import check_output, write_atomic

    if codebook is not None and metadata is not None:
        raise SettingError("goes without --codebook", field="--from", remedy="give one of them")
    form, source = metadata or (OWN, codebook)
    given = looked_at(data, table, query)
    check_output(out, given if isinstance(given, str) else None, source, forced=force)
    try_root = partial(
        drafted, given, source, kind, form=form, encoding=encoding, delimiter=delimiter, skip_rows=skip_rows
    )
    try:
        made = try_root(root=root)
    except OpenRoot as error:
        if not ask:
            raise
        made = try_root(root=_asked_root(error))
    if ask:
        made = _asked(given, made)
    text, left = made.to_yaml(out.parent).encode(), made.schema.undeclared
    write_atomic(out, lambda file: file.write(text))
    done = f"Wrote {out}: {made.schema.summary}, {counted(len(left), 'fact')} still undeclared."
    one = made.schema.each_table.keys() <= {""}  # tables of a schema are read by their own names
    said = {"data": data, "table": table if one else None, "query": query}
    compared = " ".join(f"--{name} {quote(each)}" for name, each in said.items() if each is not None)
    advice = f"\nNext: doublure schema check {quote(str(out))} {compared}".rstrip() if left else ""
    if made.perhaps_series:
        sources = {"codebook": codebook, "encoding": encoding, "delimiter": delimiter, "skip-rows": skip_rows}
        flags = {**sources, "table": table, "query": query, "root": root}
        again = ["doublure schema draft", *([] if data is None else [quote(data)]), "--kind series"]
        again += [] if metadata is None else [f"--from {metadata[0]} {quote(str(metadata[1]))}"]
        again += [f"--{flag} {quote(str(own))}" for flag, own in flags.items() if own is not None]
        advice += f"\nIf rows are readings over time: {' '.join(again)} -o {quote(str(out))} --force"
    found = {"path": str(out), "columns": len(made.schema.columns), "undeclared": list(left)}
    found |= {"first": list(made.first)} if made.first else {}
    if made.reading:
        found["reading"] = [each._asdict() for each in made.reading]
    read = "".join(
        f"\n{said}" for said in ([made.not_read] if made.not_read else []) + [f"  {each.line}" for each in made.reading]
    )
    first = f"{made.first_in_words}\n" if made.first else ""
    return VerbResult(data=found, text=first + done + read + advice)


def check(
    schema: Annotated[Path, typer.Argument(help="A schema file.")],
    data: Annotated[str | None, typer.Option(metavar=PLACE, help="Compare with this data's header.")] = None,
    values: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every cell of --data that does not fit into this file. Private."),
    ] = None,
    table: InDatabase = None,
    query: OfRows = None,
    force: Force = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Say field by field what is missing, as YAML to paste.

    Ends with exit code 4 if anything is missing.
    """
    from doublure.drafting.check import check as compare
    from doublure.schema import Schema

    if values is not None and data is None:
        raise SettingError("needs --data", field="--values", remedy="give the table whose cells are looked at")
    given = looked_at(data, table, query, Schema.load(schema).to_plain().get("tables", ()))
    if values is not None and not isinstance(given, str):
        remedy = "leave it out; a fit counts in the database what does not fit, and names the columns"
        raise SettingError("is not for a database, whose cells stay there", field="--values", remedy=remedy)
    found = compare(schema, given)
    said = VerbResult(data=found.to_plain(), text=found.to_yaml().rstrip("\n"), gate=_gate(found), to_paste=True)
    if said.gate is None and data is not None and given is not data:
        said = replace(said, gate=_gate_of_database(data, table, query, Schema.load(schema)))
    if values is not None and isinstance(given, str):
        said = _with_values(said, schema, given, values, force=force)
    if said.gate is None:
        said = replace(
            said, text=f"{said.text}\n# Next: doublure plan {schema} --epsilon EPSILON --delta DELTA -o plan.json"
        )
    if data is None or values is not None:
        return said
    if not isinstance(given, str):
        return replace(said, text=f"{said.text}\n# Only names and storage types were looked at.")
    looked = "the form of the first cells" + (" and moments were" if found.moments_read else " was")
    more = f"Only {looked} looked at: add --values misfits.csv to list those that do not fit."
    if not found.cells_to_come:
        more = "Only names, sizes and forms were looked at: fit is the first to read the records."
    elif (read := Schema.load(schema)).only_columns and any(one.listed and one.domain for one in read.columns.values()):
        more = f"Where a codebook spells a value in several ways, declare it: spellings: {{TEXT: VALUE}}.\n# {more}"
    return replace(said, text=f"{said.text}\n# {more}")


def looked_at(
    data: str | None, table: str | None, query: str | None, tables: Iterable[str] = ()
) -> str | pd.DataFrame | Mapping[str, pd.DataFrame] | None:
    """Return the data whose header is looked at: a place, or the header of a table in a database, or of several."""
    from doublure.data.databases.address import is_database
    from doublure.data.databases.relation import refuse_elsewhere, refuse_named

    if data is not None and is_database(data):
        from doublure.data.databases.header import empty_table

        if tables:
            refuse_named(table, query)
        names = [*tables] or (table.split(",") if table is not None and "," in table else [])
        return {name: empty_table(data, name) for name in names} or empty_table(data, table, query)
    refuse_elsewhere(data, table, query)
    return data


def interactive() -> bool:
    """Return whether a person reads what is printed, and no file or log takes it."""
    return sys.stdout.isatty()


def _asked(data: str | pd.DataFrame | Mapping[str, pd.DataFrame] | None, made: Draft) -> Draft:
    """Return a draft with what is answered in the terminal: questions go to stderr, answers come from stdin."""
    from doublure.drafting.asking import FactDialogue, ask_for_facts
    from doublure.drafting.draft import redrafted

    if data is None or made.schema.kind not in ASKED_FOR:
        remedy = f"give data of kind {' or '.join(ASKED_FOR)}, or fill in the draft"
        raise SettingError("asks for columns of data", field="--ask", remedy=remedy)
    return redrafted(data, ask_for_facts(made, FactDialogue(ask=ask_in_terminal, say=say_in_terminal)), made)


def _asked_root(error: OpenRoot) -> str:
    """Return the root that is answered in the terminal; without an answer, the error is raised."""
    from doublure.drafting.asking import FactDialogue, ask_for_root

    found = ask_for_root(error.tables, FactDialogue(ask=ask_in_terminal, say=say_in_terminal))
    if found is None:
        raise error
    return found


def codebook(
    schema: Annotated[Path, typer.Argument(help="A schema file.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Where to write the codebook.")],
    force: Force = False,
    as_json: Json = False,
    config: Config = None,
) -> VerbResult:
    """Write a schema as a codebook, for a spreadsheet.

    A draft from that codebook is the same schema again.
    """
    from doublure.drafting.metadata.codebook import write
    from doublure.schema import Schema
    from doublure.support.files import check_output, write_atomic

    check_output(out, schema, forced=force)
    described = Schema.load(schema)
    text = write(described).encode()
    write_atomic(out, lambda file: file.write(text))
    return VerbResult(
        data={"path": str(out), "columns": len(described.columns)}, text=f"Wrote {out}: {described.summary}."
    )


def _with_values(said: VerbResult, schema: Path, data: str, out: Path, *, force: bool) -> VerbResult:
    """Add the misfits to the result, by column and reason; their cells go into the file alone."""
    from doublure.data.records import SEVERAL, several_records
    from doublure.data.series.sources import GAPS_ALLOWED
    from doublure.drafting.misfits import MisfitReason, Seen, list_misfits, mostly
    from doublure.drafting.owner_notes import NOTES
    from doublure.schema import Schema

    described = Schema.load(schema)
    notes = NOTES[described.kind](described, data)
    seen = Seen()
    counts = list_misfits(described, data, out, notes=notes, force=force, seen=seen)
    lines = [
        f"# {printable(column)} ({count} ×): {why}{_form_of(described, column, reason) if reason.unread else ''}"
        for (column, why, reason), count in counts.items()
    ]
    lines.append(f"# Wrote {out}: {counted(sum(counts.values()), 'misfit')}. Private: only you can read it.")
    if notes and interactive():
        lines += ["# PRIVATE, in this terminal and in that file alone:", *(f"#   {each.line}" for each in notes)]
    listed = [{"column": column, "why": why, "cells": count} for (column, why, _), count in counts.items()]
    refused = [(each, count) for each, count in counts.items() if not each.reason.tolerated]
    gate = said.gate
    if gate is None and refused and described.misfit == "refuse":
        remedy = f"see {out}; fix the data, declare what is public of any such table, give a list an other "
        remedy += "or spellings, or write misfit: coerce"
        if all(each.reason is MisfitReason.GAP for each, _ in refused):
            remedy = f"see {out}; {GAPS_ALLOWED}"
        cells = sum(count for _, count in refused)
        gate = GateFailed(f"has cells that do not fit ({cells} in all)", field=refused[0][0].column, remedy=remedy)
    if gate is None and (wrong := mostly(counts, seen)):
        column, times = next(iter(wrong.items()))
        message = f"does not fit in most records ({times})"
        remedy = f"see {out}; fix the data or the schema: a fit would spend ε on noise"
        gate = GateFailed(message, field=column, remedy=remedy)
    if gate is None and described.one_each and any(each.column == described.unit.id for each in notes):
        gate = GateFailed(several_records(described.unit.name), field=described.unit.id, remedy=SEVERAL)
    data_said = {**said.data, "values": {"path": str(out), "misfits": listed}}
    return replace(said, data=data_said, text="\n".join([said.text, *lines]), gate=gate)


def _form_of(schema: Schema, name: str, reason: MisfitReason) -> str:
    """Return how another form of a column's cells is declared, behind a semicolon; empty without a hint."""
    from doublure.drafting.form_hints import form_hint
    from doublure.drafting.misfits import MisfitReason

    column = schema.columns.get(name)
    words = () if column is None or column.description is None else (column.description,)
    if column is None:
        return ""
    fractions = reason is MisfitReason.FRACTION
    found = form_hint(column, schema.cell_form.marks, words, fractions=fractions).line
    return f"; {found}" if found else ""


def _gate_of_database(url: str, table: str | None, query: str | None, schema: Schema) -> GateFailed | None:
    """Return the failed gate where a fit that counts in the database is refused; None where none is."""
    from doublure.errors import InputError
    from doublure.run.database_units import check_in_database

    try:
        check_in_database(url, table, query, schema)
    except InputError as refused:
        return GateFailed(refused.message, field=refused.field, remedy=refused.remedy)
    return None


def _gate(found: Check) -> GateFailed | None:
    """Return the failed gate: the first obstacle to a plan or a fit, and the number of others."""
    if found.ok:
        return None
    from doublure.drafting.check import BLOCKING

    wrong = [finding for finding in found.findings if finding.kind in BLOCKING]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    message = "is undeclared" if wrong[0].kind == "undeclared" else wrong[0].message
    remedy = "put one of the lines that are printed for each into the schema; see docs/schema.md"
    if wrong[0].kind == "absent":
        remedy = "see docs/schema.md"
    return GateFailed(f"{message}{more}", field=wrong[0].path, remedy=remedy)
