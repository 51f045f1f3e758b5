"""Data: a file, a folder or a database, of which no cell is shown or kept."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO
from urllib.parse import urlencode

from doublure.data.databases.address import url_scheme
from doublure.data.databases.header import empty_table
from doublure.drafting.draft import Draft, drafted
from doublure.drafting.metadata.registry import FORMS
from doublure.drafting.relations import OpenRoot
from doublure.errors import DoublureError, InputError, SettingError, counted
from doublure.schema import Schema
from doublure.schema.kinds import KINDS
from doublure.studio import script
from doublure.studio.folder import ProjectFolder
from doublure.studio.project import (
    BUNDLE,
    FILE,
    PLAN,
    RUN,
    DataSource,
    Project,
    ProjectColumn,
    confined,
    with_table,
)
from doublure.studio.sheets import with_sheets
from doublure.studio.step import Page, Step
from doublure.studio.steps import codebook
from doublure.studio.visit import FieldError, FormErrors, Misfits, Studio, Visit, as_fields, write_private
from doublure.support import yaml12
from doublure.support.files import write_atomic

_OWN = (FILE, "commands.sh", PLAN, RUN, BUNDLE)
_SCHEMA_ENDING, _LEDGER_ENDING = ".schema.yaml", ".ledger"
_KEYS = script.READING
_PRIVATE = 0o600
_AT_ONCE = 2**20
_NOTHING: Mapping[str, bytes] = MappingProxyType({})


def show(visit: Visit) -> Page:
    """Show what may be the data, and what is read of it."""
    entries = list(visit.studio.folder.entries())
    schemas = [each.name for each in entries if each.name.endswith(_SCHEMA_ENDING)]
    files = [each for each in entries if each.name not in (*_OWN, *schemas) and not each.name.endswith(_LEDGER_ENDING)]
    context = {
        "files": [choice for each in files for choice in _choices(visit.studio.folder, each)],
        "schemas": [(each, each) for each in schemas],
        "waiting": _waiting(visit),
        "forms": [(name, f"{name}: {form.title}") for name, form in FORMS.items()],
        "kinds": [("", "told by its form"), *((each, each) for each in KINDS if each != "visits")],
    }
    return Page("data.html.j2", context)


def _choices(folder: ProjectFolder, path: Path) -> list[tuple[str, str]]:
    """Return what a file or folder offers as data or codebook: a name, and its words."""
    if path.is_dir():
        return [(path.name, f"{path.name}/")]
    return [(name, f"{name} ({_size(path)})") for name in with_sheets(folder, path)]


def choose(visit: Visit, replaced: Mapping[str, bytes] = _NOTHING) -> str:
    """Draft the schema of the chosen data; a codebook that was dropped in and is refused does not stay.

    A workbook of several sheets does: it is refused until one of them is chosen.
    """
    new = _new_codebook(visit)
    try:
        return _chosen(visit, replaced)
    except DoublureError:
        if new is not None and with_sheets(visit.studio.folder, new) == [new.name] != [visit.project.codebook]:
            new.unlink(missing_ok=True)
        raise


def _new_codebook(visit: Visit) -> Path | None:
    """Return where a dropped codebook will lie, if nothing lies there yet."""
    if "codebook_file" not in visit.uploads:
        return None
    try:
        path = _place(visit, visit.uploads["codebook_file"][0])
    except InputError:  # told beside its field
        return None
    return None if path.exists() else path


def _chosen(visit: Visit, replaced: Mapping[str, bytes]) -> str:
    found = FormErrors()
    studio = visit.studio
    source = book = kept = None
    with found.at("place"):
        source = _source(visit, found)
    with found.at("codebook"):
        waits = _corrects(visit)
        book = None if waits else _file(visit, "codebook", "codebook_file")
    for key in _KEYS:
        with found.at(key):
            _key(visit, key)
    with found.at("schema"):
        kept = studio.folder.existing(visit.text("schema")) if visit.text("schema") else None
    found.stop()
    if source is None:
        raise InputError("no data is chosen", field="place", remedy="choose a file, or give the URL of a database")
    if waits:
        return _keep_waiting(visit, source)
    try:
        made = _drafted(visit, source, None if book is None else studio.folder.part(book))
    except OpenRoot as error:
        raise Misfits((FieldError("root", f"{error.message}; name the table with one row for each unit"),)) from None
    except DoublureError as error:
        of_book = book is not None and str(error.field or "").startswith(Path(book).name)
        raise Misfits(as_fields(error, "codebook" if of_book else "place", whole=of_book)) from None

    def chosen(before: Project) -> Project:
        new = before.changed(source=source, codebook=book, form=visit.text("form") or "codebook", answers={})
        new = new.changed(root=visit.text("root"))
        if kept is not None:
            return from_schema(new, made, kept)
        return from_draft(new, made, _free_name(studio, source, before))

    said = " ".join(filter(None, (f"The header was read: {_counted(made)}.", made.not_read, made.not_in_data)))
    project = visit.change(chosen, said, undoes="the choice of the data", replaced=replaced)
    if project.own_schema and kept is None and project.schema_file is not None:
        text = made.to_yaml(studio.root)
        write_atomic(studio.root / project.schema_file, lambda file: file.write(text.encode()), mode=_PRIVATE)
    return "/people"


def _counted(made: Draft) -> str:
    tables = made.schema.to_plain().get("tables", {})
    return counted(len(made.schema.columns), "column") + (f" of {counted(len(tables), 'table')}" if tables else "")


def _drafted(visit: Visit, source: DataSource, book: Path | None) -> Draft:
    keys = {key: said for key in _KEYS if (said := _key(visit, key))}
    return drafted(
        looked_at(visit.studio, source),
        book,
        visit.text("kind") or None,
        form=visit.text("form") or "codebook",
        root=visit.text("root") or None,
        **keys,
    )


def _key(visit: Visit, key: str) -> Any:
    text = visit.text(key)
    return _rows(text) if text and key == "skip_rows" else text


def _corrects(visit: Visit) -> bool:
    """Whether a codebook was dropped in that is there under its name with another content."""
    if "codebook_file" not in visit.uploads:
        return False
    name, content = visit.uploads["codebook_file"]
    path = _place(visit, name)
    return path.is_file() and not _holds(visit.studio.folder, name, content)


def _keep_waiting(visit: Visit, source: DataSource) -> str:
    """Keep a corrected codebook until it is decided about; return the address that says what it changes."""
    name, content = visit.uploads["codebook_file"]
    new = codebook.keep_waiting(visit.studio, name, content)
    try:
        _drafted(visit, source, new)
    except DoublureError as error:
        new.unlink()
        refused = InputError(error.message, field=str(error.field or "").replace(new.name, name), remedy=error.remedy)
        raise Misfits(as_fields(refused, "codebook", whole=True)) from None
    place = {"url": source.place, "table": source.table} if source.table else {"place": source.place}
    told = {key: visit.text(key) for key in ("kind", "form", "root", *_KEYS) if visit.text(key)}
    return f"/data?{urlencode({'codebook': name, **place, **told})}"


def _waiting(visit: Visit) -> dict[str, Any] | None:
    """Return what the screen says of a codebook that waits to replace another; None where none does."""
    name = visit.query.get("codebook", "")
    if not name or not codebook.waiting(visit.studio, name).is_file():
        return None
    form, read = visit.query.get("form", "codebook"), visit.project.codebook == name
    return {
        "name": name,
        "read": read,
        "changes": codebook.changes(visit.studio, name, form) if read else (),
        "fields": {key: visit.query[key] for key in _CARRIED if visit.query.get(key)},
        "decided": read and visit.project.source is not None,
    }


_CARRIED = ("place", "url", "table", "kind", "form", "root", "codebook", *_KEYS)
"""Fields that go with a codebook until it is decided about."""


def decide(visit: Visit) -> str:
    """Replace a codebook by the corrected one, or leave it as it is."""
    studio, project, name = visit.studio, visit.project, visit.text("codebook")
    path, new = studio.folder.existing(name), codebook.waiting(studio, name)
    if not new.is_file():
        raise InputError("waits no more", field=name, remedy="drop it in again")
    if visit.text("do") != "replace":
        new.unlink()
        studio.status = f"{name} stays as it was."
        return "/data"
    source = _source(visit, FormErrors())
    before = path.read_bytes()
    again = source is not None and project.source == source and project.codebook == name and project.columns
    made = [_drafted(visit, source, each) for each in (path, new)] if source is not None and again else []
    write_private(path, new.read_bytes())
    try:
        if made:
            said = f"{name} is replaced. Columns that it describes otherwise are changed, all others stay."
            visit.change(
                lambda old: codebook.corrected(old, *made), said, undoes=f"{name} replaced", replaced={name: before}
            )
            to = "/columns"
        else:
            to = choose(visit, replaced={name: before})
    except DoublureError:
        write_private(path, before)
        raise
    new.unlink()
    return to


def _free_name(studio: Studio, source: DataSource, before: Project) -> str:
    """Return the name of the schema that is drafted: the data's, unless a file of that name is not the studio's."""
    names = (f"{source.stem}{more}{_SCHEMA_ENDING}" for more in ("", *(f"-{number}" for number in range(2, 1_000))))
    own = before.schema_file if before.written is not None else None
    return next(name for name in names if name == own or not studio.folder.path(name).exists())


def from_draft(project: Project, made: Draft, schema_file: str) -> Project:
    """Return a project with what a draft says."""
    plain = made.schema.to_plain()
    held = made.schema.flat.only_columns or made.schema.kind == _RELATED
    columns = tuple(
        ProjectColumn(
            name=each.name,
            storage=each.storage,
            facts=dict(each.facts),
            left_out=each.left_out,
            proposal=None if each.proposal is None or each.proposal.column is None else dict(each.proposal.column),
            why="" if each.proposal is None else each.proposal.why,
            described=each.described,
            unread=each.unread,
        )
        for each in (made.columns if held else ())
    )
    rules, tables = _rules_and_tables(plain)
    return project.changed(
        kind=made.schema.file_kind,
        schema_file=schema_file,
        written=None,
        own_schema=not held,
        keys={key: value for key, value in plain.items() if key not in _HELD},
        unit=plain["unit"],
        units=plain["units"],
        tables=tables,
        columns=columns,
        rules=rules,
    )


_HELD = ("doublure", "kind", "unit", "units", "tables", "columns", "constraints")
"""The keys of a schema that a project holds by themselves."""
_RELATED = "relational"


def _rules_and_tables(plain: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, dict[str, Any]]]:
    """Return a schema's rules by ``table.column``, and of related tables all but columns and rules."""
    rules, tables = list(plain.get("constraints") or ()), {}
    for name, table in (plain.get("tables") or {}).items():
        rules += [with_table(rule, name, table["columns"]) for rule in table.get("constraints") or ()]
        tables[name] = {key: fact for key, fact in table.items() if key not in ("columns", "constraints")}
    return tuple(rules), tables


def _columns_in(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema's columns, of related tables by ``table.column``."""
    related = plain.get("tables") or {}
    return dict(plain.get("columns") or {}) | {
        f"{table}.{name}": facts for table, each in related.items() for name, facts in each["columns"].items()
    }


def from_schema(project: Project, made: Draft, path: Path) -> Project:
    """Return a project with what a schema says that is there already; columns that only the data has are left out."""
    schema = Schema.load(path)
    written: Any = yaml12.load(path, "schema")
    plain = schema.to_plain()
    held = schema.flat.only_columns or schema.kind == _RELATED
    if not held or any("*" in name for name in _columns_in(written)):
        return project.changed(schema_file=path.name, own_schema=True, kind=schema.file_kind, tables={}, columns=())
    told = _columns_in(plain)
    named = {name: {**told[name], **_files(facts)} for name, facts in _columns_in(written).items()}
    rules, tables = _rules_and_tables({**plain, "constraints": written.get("constraints")})
    drafted_columns = [each for each in made.columns if not tables or each.name.partition(".")[0] in tables]
    drafted_ones = {each.name: each for each in drafted_columns}
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
        kind=_RELATED if tables else "table",
        schema_file=path.name,
        written=hashlib.sha256(path.read_bytes()).hexdigest(),
        own_schema=False,
        keys={key: value for key, value in plain.items() if key not in _HELD},
        unit=plain["unit"],
        units=plain["units"],
        tables=tables,
        columns=tuple(columns),
        rules=rules,
    )


def looked_at(studio: Studio, source: DataSource) -> Any:
    """Return what the public functions take: the path of a file, or the header of a table in a database."""
    if url_scheme(source.place) is None:
        return studio.folder.part(source.place)
    url, names = confined(source.place, studio.folder), source.tables
    if len(names) > 1:
        return {name: empty_table(url, name) for name in names}
    return empty_table(url, source.table)


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
            raise SettingError("is not given", remedy="name the table or view of records; of related tables all")
    return DataSource(place=url, table=table or None)


def _file(visit: Visit, chosen: str, dropped: str) -> str | None:
    """Return the name of a file: dropped in, and then kept in the folder, or chosen there."""
    folder = visit.studio.folder
    if dropped in visit.uploads:
        name, content = visit.uploads[dropped]
        path = _place(visit, name)
        with visit.studio.taking:  # two tabs may drop in two files of one name
            if path.exists() and (path.is_dir() or not _holds(folder, name, content)):
                remedy = "rename one of them"
                raise InputError("is in the folder already, with another content", field=name, remedy=remedy)
            if not path.exists():
                write_atomic(path, lambda file: shutil.copyfileobj(content, file), mode=_PRIVATE)
        return name
    name = visit.text(chosen)
    return folder.name(folder.part(name)) if name else None


def _place(visit: Visit, name: str) -> Path:
    """Return where a file that was dropped in lies.

    Raises:
        InputError: It has the name of something of the studio's own.
    """
    if "/" in name or name.startswith(".") or name in _OWN or name.endswith((_SCHEMA_ENDING, _LEDGER_ENDING)):
        raise InputError("cannot have this name here", field=name, remedy="rename it")
    return visit.studio.folder.path(name)


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


STEP = Step(
    key="data", title="Data", show=show, takes={"choose": choose, "decide": decide}, same=script.data, done=done
)
