"""Data: a file, a folder or a database, of which no cell is shown or kept."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any, BinaryIO

from doublure.data.databases.address import url_scheme
from doublure.data.databases.header import empty_table
from doublure.drafting.draft import Draft, drafted
from doublure.drafting.metadata.registry import FORMS
from doublure.errors import DoublureError, InputError, SettingError
from doublure.schema import Schema
from doublure.schema.kinds import KINDS
from doublure.studio import script
from doublure.studio.folder import ProjectFolder
from doublure.studio.project import BUNDLE, FILE, PLAN, RUN, DataSource, Project, ProjectColumn, confined
from doublure.studio.step import Page, Step
from doublure.studio.visit import FormErrors, Misfits, Studio, Visit, as_fields
from doublure.support import yaml12
from doublure.support.files import write_atomic

_OWN = (FILE, "commands.sh", PLAN, RUN, BUNDLE)
_SCHEMA_ENDING, _LEDGER_ENDING = ".schema.yaml", ".ledger"
_KEYS = ("encoding", "delimiter", "skip_rows")
_PRIVATE = 0o600
_AT_ONCE = 2**20


def show(visit: Visit) -> Page:
    """Show what may be the data, and what is read of it."""
    entries = list(visit.studio.folder.entries())
    schemas = [each.name for each in entries if each.name.endswith(_SCHEMA_ENDING)]
    files = [each for each in entries if each.name not in (*_OWN, *schemas) and not each.name.endswith(_LEDGER_ENDING)]
    context = {
        "files": [(each.name, f"{each.name}/" if each.is_dir() else f"{each.name} ({_size(each)})") for each in files],
        "schemas": [(each, each) for each in schemas],
        "forms": [(name, f"{name}: {form.title}") for name, form in FORMS.items()],
        "kinds": [("", "told by its form"), *((each, each) for each in KINDS if each != "visits")],
    }
    return Page("data.html.j2", context)


def choose(visit: Visit) -> str:
    """Draft the schema of the chosen data."""
    found = FormErrors()
    studio = visit.studio
    source = book = kept = None
    with found.at("place"):
        source = _source(visit, found)
    with found.at("codebook"):
        book = _file(visit, "codebook", "codebook_file")
    keys: dict[str, Any] = {}
    for key in _KEYS:
        with found.at(key):
            if visit.text(key):
                keys[key] = _rows(visit.text(key)) if key == "skip_rows" else visit.text(key)
    with found.at("schema"):
        kept = studio.folder.existing(visit.text("schema")) if visit.text("schema") else None
    found.stop()
    if source is None:
        raise InputError("no data is chosen", field="place", remedy="choose a file, or give the URL of a database")
    try:
        made = drafted(
            looked_at(studio, source),
            None if book is None else studio.root / book,
            visit.text("kind") or None,
            form=visit.text("form") or "codebook",
            **keys,
        )
    except DoublureError as error:
        of_book = book is not None and str(error.field or "").startswith(Path(book).name)
        raise Misfits(as_fields(error, "codebook" if of_book else "place", whole=of_book)) from None

    def chosen(before: Project) -> Project:
        new = before.changed(source=source, codebook=book, form=visit.text("form") or "codebook", answers={})
        if kept is not None:
            return from_schema(new, made, kept)
        return from_draft(new, made, _free_name(studio, source, before))

    said = " ".join(filter(None, (f"The header was read: {len(made.columns)} columns.", made.not_in_data)))
    project = visit.change(chosen, said)
    if project.own_schema and kept is None and project.schema_file is not None:
        text = made.to_yaml(studio.root)
        write_atomic(studio.root / project.schema_file, lambda file: file.write(text.encode()), mode=_PRIVATE)
    return "/people"


def _free_name(studio: Studio, source: DataSource, before: Project) -> str:
    """Return the name of the schema that is drafted: the data's, unless a file of that name is not the studio's."""
    names = (f"{source.stem}{more}{_SCHEMA_ENDING}" for more in ("", *(f"-{number}" for number in range(2, 1_000))))
    own = before.schema_file if before.written is not None else None
    return next(name for name in names if name == own or not studio.folder.path(name).exists())


def from_draft(project: Project, made: Draft, schema_file: str) -> Project:
    """Return a project with what a draft says."""
    plain = made.schema.to_plain()
    table = made.schema.only_columns
    keys = {key: value for key, value in plain.items() if key not in _HELD}
    columns = tuple(
        ProjectColumn(
            name=each.name,
            storage=each.storage,
            facts=dict(each.facts),
            left_out=each.left_out,
            proposal=None if each.proposal is None or each.proposal.column is None else dict(each.proposal.column),
            why="" if each.proposal is None else each.proposal.why,
            described=each.described,
        )
        for each in (made.columns if table else ())
    )
    return project.changed(
        kind=made.schema.kind,
        schema_file=schema_file,
        written=None,
        own_schema=not table,
        keys=keys,
        unit=plain["unit"],
        units=plain["units"],
        columns=columns,
        rules=tuple(plain.get("constraints", ())),
    )


_HELD = ("doublure", "kind", "unit", "units", "columns", "constraints")
"""The keys of a schema that a project holds by themselves."""


def from_schema(project: Project, made: Draft, path: Path) -> Project:
    """Return a project with what a schema says that is there already; columns that only the data has are left out."""
    schema = Schema.load(path)
    written: Any = yaml12.load(path, "schema")
    plain = schema.to_plain()
    if not schema.only_columns or any("*" in name for name in written["columns"]):
        return project.changed(schema_file=path.name, own_schema=True, kind=schema.kind, columns=())
    named = {name: {**plain["columns"][name], **_files(facts)} for name, facts in written["columns"].items()}
    drafted_ones = {each.name: each for each in made.columns}
    columns = [
        ProjectColumn(
            name=name,
            storage=drafted_ones[name].storage if name in drafted_ones else "",
            facts=named.get(name) or dict(drafted_ones[name].facts),
            left_out=name not in named,
            described=name in named,
        )
        for name in dict.fromkeys([*drafted_ones, *named])
    ]
    return project.changed(
        kind="table",
        schema_file=path.name,
        written=hashlib.sha256(path.read_bytes()).hexdigest(),
        own_schema=False,
        keys={key: value for key, value in plain.items() if key not in _HELD},
        unit=plain["unit"],
        units=plain["units"],
        columns=tuple(columns),
        rules=tuple(written.get("constraints") or ()),
    )


def looked_at(studio: Studio, source: DataSource) -> Any:
    """Return what the public functions take: the path of a file, or the header of a table in a database."""
    if url_scheme(source.place) is None:
        return studio.folder.existing(source.place)
    return empty_table(confined(source.place, studio.folder), source.table)


def _source(visit: Visit, found: FormErrors) -> DataSource | None:
    url, table = visit.text("url"), visit.text("table")
    name = _file(visit, "place", "data_file")
    if url and name:
        raise InputError("a file and a database are given", remedy="choose one of the two")
    if not url:
        return None if name is None else DataSource(place=name)
    with found.at("url"):
        if url_scheme(url) is None:
            raise SettingError("is no URL of a database", remedy="write duckdb:///file.db or postgresql://user@host/db")
        confined(url, visit.studio.folder)
    with found.at("table"):
        if not table:
            raise SettingError("is not given", remedy="name the table or view of records")
    return DataSource(place=url, table=table or None)


def _file(visit: Visit, chosen: str, dropped: str) -> str | None:
    """Return the name of a file: dropped in, and then kept in the folder, or chosen there."""
    folder = visit.studio.folder
    if dropped in visit.uploads:
        name, content = visit.uploads[dropped]
        path = folder.path(name)
        if "/" in name or name.startswith(".") or name in _OWN or name.endswith((_SCHEMA_ENDING, _LEDGER_ENDING)):
            raise InputError("cannot have this name here", field=name, remedy="rename it")
        with visit.studio.taking:  # two tabs may drop in two files of one name
            if path.exists() and (path.is_dir() or not _holds(folder, name, content)):
                remedy = "rename one of them"
                raise InputError("is in the folder already, with another content", field=name, remedy=remedy)
            if not path.exists():
                write_atomic(path, lambda file: shutil.copyfileobj(content, file), mode=_PRIVATE)
        return name
    name = visit.text(chosen)
    return folder.name(folder.existing(name)) if name else None


def _holds(folder: ProjectFolder, name: str, content: BinaryIO) -> bool:
    """Whether a file holds what was dropped in; neither is read whole."""
    with folder.open(name) as file:
        same = os.fstat(file.fileno()).st_size == content.seek(0, os.SEEK_END)
        content.seek(0)
        while same and (part := file.read(_AT_ONCE)):
            same = part == content.read(_AT_ONCE)
    content.seek(0)
    return same


def _rows(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10_000:
        raise SettingError("is not a whole number of at least 1", remedy="count the lines above the header")
    return int(text)


def _files(facts: Any) -> dict[str, Any]:
    """Return the facts that name a file, as they are written."""
    named = {key: facts[key] for key in ("parents", "from") if isinstance(facts.get(key), str)}
    values = facts.get("values")
    return named | ({"values": values} if isinstance(values, dict) and "file" in values else {})


def _size(path: Path) -> str:
    size = float(path.stat().st_size)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def done(studio: Studio) -> bool:
    """Return whether data was chosen."""
    return studio.project.source is not None


STEP = Step(key="data", title="Data", show=show, takes={"choose": choose}, same=script.data, done=done)
