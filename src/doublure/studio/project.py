"""The decisions made in the studio, as ``project.yaml``, and the schema that follows from them.

The schema file and the commands are written from it with every change, so that all goes on without the studio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError

from doublure.data.databases.address import read_address, url_scheme
from doublure.errors import InputError
from doublure.schema import Schema
from doublure.schema.fact_states import UNDECLARED, Frozen
from doublure.schema.messages import finding
from doublure.schema.rule_files import with_files
from doublure.schema.unit import people_in
from doublure.studio.folder import ProjectFolder
from doublure.support import yaml12

FILE = "project.yaml"
PLAN, RUN, BUNDLE = "plan.json", "run", "bundle"
"""Names of what the later commands write."""
ONE_EACH = "one"
"""The answer that each row is a different person."""


class DataSource(Frozen):
    """Where the private data is.

    Attributes:
        place: A name inside the folder, or the URL of a database.
        table: The table there, of related tables several with commas between; None of a file.
    """

    place: str
    table: str | None = None

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of a database."""
        return tuple(each.strip() for each in (self.table or "").split(",") if each.strip())

    @property
    def stem(self) -> str:
        """A short word for it, of which files are named."""
        return next(iter(self.tables), "") or Path(self.place).name.partition(".")[0] or "data"


class ProjectColumn(Frozen):
    """A column of the data, and what was decided about it.

    Attributes:
        name: As the header has it.
        storage: How its cells are stored, such as ``integer``.
        facts: As the schema file has them, ``type`` included.
        left_out: Whether it stays out of the schema.
        proposal: Facts that its name or form suggests; None without.
        why: The condition of the proposal, after "if".
        described: Whether the codebook has it.
        unread: What was not read of the codebook's row, and why.
    """

    name: str
    storage: str = ""
    facts: Mapping[str, Any] = Field(default_factory=dict)
    left_out: bool = False
    proposal: Mapping[str, Any] | None = None
    why: str = ""
    described: bool = False
    unread: tuple[str, ...] = ()

    def changed(self, **fields: Any) -> Self:
        """Return the column with some fields replaced."""
        return type(self).model_validate({**vars(self), **fields})


class Project(Frozen):
    """All decisions of a session; every change makes another one, with a higher version.

    Attributes:
        studio: The version of this format.
        version: The number of changes; a form that was made of an older one is stale.
        source: The data.
        kind: The kind of data, as in a schema.
        schema_file: The schema's name in the folder.
        written: The SHA-256 of that file as the studio left it; another was written by hand.
        own_schema: Whether that file is edited as text, as the screen of columns is of one table.
        codebook: The codebook's name in the folder.
        form: Its form, as ``schema draft --from`` names it.
        keys: Further keys at the top of the schema, such as ``delimiter``.
        unit: Who is protected.
        units: How many there are.
        tables: Of related tables, table -> its keys and its place; its columns are named ``table.column``.
        columns: The columns, in the order of the header.
        rules: Rules between columns.
        epsilon: Of the plan.
        delta: Of the plan.
        method: Of the plan.
        ledger: The ledger's name in the folder.
        answers: What later steps asked: the step's key -> field -> answer.
        root: Of related tables the one that was named as the root.
    """

    studio: Literal[1] = 1
    version: int = 0
    source: DataSource | None = None
    kind: str = "table"
    schema_file: str | None = None
    written: str | None = None
    own_schema: bool = False
    codebook: str | None = None
    form: str = "codebook"
    keys: Mapping[str, Any] = Field(default_factory=dict)
    unit: Mapping[str, Any] = Field(default_factory=lambda: {"name": "person"})
    units: Any = UNDECLARED
    tables: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    columns: tuple[ProjectColumn, ...] = ()
    rules: tuple[Mapping[str, Any], ...] = ()
    epsilon: float = 1.0
    delta: float | None = None
    method: str = "auto"
    ledger: str | None = None
    answers: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    root: str = ""

    def column(self, name: str) -> ProjectColumn | None:
        """Return a column by its name."""
        return next((each for each in self.columns if each.name == name), None)

    def own_name(self, name: str) -> str:
        """Return the name that a column has in its own table."""
        return name.partition(".")[2] if self.tables else name

    def with_columns(self, changed: Mapping[str, ProjectColumn]) -> Project:
        """Return the project with some columns replaced."""
        return self.changed(columns=tuple(changed.get(each.name, each) for each in self.columns))

    def changed(self, **fields: Any) -> Self:
        """Return the project with some fields replaced, checked."""
        return type(self).model_validate({**vars(self), **fields})

    def answer(self, step: str, **answers: Any) -> Project:
        """Return the project with answers to a later step added."""
        return self.changed(answers={**self.answers, step: {**self.answers.get(step, {}), **answers}})

    def refuse_outside(self, folder: ProjectFolder) -> None:
        """Refuse a project that names something outside the folder: commands are made of these names.

        Raises:
            InputError: Naming it.
            SettingError: The URL of its database is none, or has a password.
        """
        source, said = self.source, self.answers
        names = [self.schema_file, self.codebook, self.ledger, said.get("fit", {}).get("run"),
                 said.get("release", {}).get("bundle"), said.get("look", {}).get("real"),
                 said.get("look", {}).get("holdout")]  # fmt: skip
        if source is not None and url_scheme(source.place) is not None:
            confined(source.place, folder)
        elif source is not None:
            names.append(source.place)
        for name in filter(None, names):
            folder.path(str(name))

    @property
    def plain_unit(self) -> dict[str, Any]:
        """The unit as the schema file has it.

        Where each row is a different person, an id that comes into the schema names that person. Left without a unit
        the id would be open. A fit refuses data in which it repeats.
        """
        one = self.answers.get("people", {}).get("who") == ONE_EACH and not self.tables
        ids = [each.name for each in self.columns if not each.left_out and each.facts.get("type") == "id"]
        named = [name for name in ids if people_in(name) is not None] or ids
        return dict(self.unit) | ({"id": named[0]} if one and named and self.unit.get("id") is None else {})

    def plain_schema(self) -> dict[str, Any]:
        """Return the schema as its file has it: files of values are named, and not read."""
        head = {"doublure": 1, "kind": self.kind, "unit": self.plain_unit, "units": self.units, **self.keys}
        columns = {each.name: dict(each.facts) for each in self.columns if not each.left_out}
        rules = [dict(rule) for rule in self.rules]
        if not self.tables:
            return head | {"columns": columns} | ({"constraints": rules} if rules else {})
        tables: dict[str, Any] = {name: {**facts, "columns": {}} for name, facts in self.tables.items()}
        for name, facts in columns.items():
            table, _, own = name.partition(".")
            tables[table]["columns"][own] = facts
        across: list[Any] = []
        for rule in rules:
            of, within = _of_one_table(rule, columns)
            if of is None:
                across.append(rule)
            else:
                tables[of]["constraints"] = [*tables[of].get("constraints", ()), within]
        return head | {"tables": tables} | ({"constraints": across} if across else {})

    def described(self, folder: ProjectFolder) -> Schema:
        """Return the schema; facts may be undeclared.

        Args:
            folder: Where files that it names lie.

        Raises:
            InputError: A file that it names is not inside the folder.
            SchemaError: It contradicts itself.
        """
        if self.own_schema and self.schema_file is not None:
            path = folder.existing(self.schema_file)
            refuse_outside(yaml12.load(path, "schema"), folder)
            return Schema.load(path)
        plain: Any = self.plain_schema()
        refuse_outside(plain, folder)
        return Schema.from_plain(with_files(plain, folder.root), self.schema_file or "schema")

    def schema_text(self) -> str:
        """Return the schema file: a column a line."""
        plain = self.plain_schema()
        tables, rules = plain.pop("tables", {}), plain.pop("constraints", [])
        columns = _columns_text(plain.pop("columns", {}), "") if not tables else ["tables:\n"]
        lines = ["# Written by doublure studio; edit it there, or here once you are done there.\n", yaml12.dump(plain)]
        lines += columns
        for name, table in tables.items():
            lines.append(f"  {yaml12.inline(name)}:\n")
            lines += [f"    {key}: {yaml12.inline(fact)}\n" for key, fact in table.items() if key != "columns"]
            lines += _columns_text(table["columns"], "    ")
        lines += ["constraints:\n", *(f"  - {yaml12.inline(rule)}\n" for rule in rules)] if rules else []
        return "".join(lines)

    def to_yaml(self) -> str:
        """Return ``project.yaml``."""
        head = "# Written by doublure studio. The schema and the commands beside it follow from this file.\n"
        return head + yaml12.dump(self._plain() | {"studio": 1})

    def as_loaded(self) -> Self:
        """Return the project as :meth:`load` reads it from its file."""
        return type(self).model_validate(self._plain())

    def _plain(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def load(cls, path: Path) -> Project:
        """Read ``project.yaml``.

        Raises:
            InputError: It is damaged, or of another version.
        """
        found = yaml12.load(path, "project")
        if not isinstance(found, dict):
            raise InputError("is no project", field=path.name, remedy="move it away and begin again")
        try:
            return cls.model_validate(found)
        except ValidationError as error:
            where, message, remedy = finding(error)
            field = f"{path.name} {'.'.join(map(str, where))}".strip()
            raise InputError(message, field=field, remedy=remedy or "fix it, or move it away and begin again") from None


def confined(url: str, folder: ProjectFolder) -> str:
    """Return the URL of a database, whose file is inside the folder.

    Raises:
        SettingError: It is of something else, or has a password.
        InputError: Its file is outside, or not there.
    """
    address: Any = read_address(url)
    return url if address.engine != "duckdb" else f"duckdb:///{folder.existing(address.database)}"


def refuse_outside(plain: Any, folder: ProjectFolder, *, of_a_column: bool = False) -> None:
    """Refuse a schema, or a part of one, that names a file outside the folder, such as through a link.

    Raises:
        InputError: Naming it.
    """
    if isinstance(plain, Mapping):
        for key, value in plain.items():
            if isinstance(value, str) and (key in _FILE_KEYS or (of_a_column and key == "from")):
                folder.existing(value)
            if key in ("columns", "attributes") and isinstance(value, Mapping):
                for column in value.values():
                    refuse_outside(column, folder, of_a_column=True)
            else:
                refuse_outside(value, folder)
    elif isinstance(plain, (list, tuple)):
        for each in plain:
            refuse_outside(each, folder)


def with_table(rule: Any, table: str, columns: Iterable[str]) -> Any:
    """Return a rule of one table with its columns named ``table.column``.

    Example:
        >>> from doublure.studio.project import with_table
        >>> with_table({"at_most": ["born", "died"]}, "people", ["born", "died", "sex"])
        {'at_most': ['people.born', 'people.died']}
    """
    return _renamed(rule, {name: f"{table}.{name}" for name in columns})


def _of_one_table(rule: Mapping[str, Any], columns: Iterable[str]) -> tuple[str | None, Any]:
    """Return the one table that a rule looks at, and the rule by its own names; None where there are several."""
    own = {name: name.partition(".")[2] for name in columns}
    tables = {name.partition(".")[0] for name in _texts(rule) if name in own}
    return (tables.pop(), _renamed(rule, own)) if len(tables) == 1 else (None, rule)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (key for key in value if isinstance(key, str))
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield value


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {names.get(key, key): _renamed(each, names) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def _columns_text(columns: Mapping[str, Any], indent: str) -> list[str]:
    lines = [f"{indent}  {yaml12.inline(name)}: {yaml12.inline(facts)}\n" for name, facts in columns.items()]
    return [f"{indent}columns:\n", *lines]


_FILE_KEYS = frozenset({"file", "parents", "map", "combinations"})
"""Keys whose texts name files, wherever they stand in a schema; ``from`` is a file in a column alone."""
