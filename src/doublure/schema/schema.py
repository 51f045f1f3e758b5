"""The schema: what is public about private data, and what is to be bought.

:class:`Schema` holds facts in three states (:mod:`doublure.schema.fact_states`); :class:`ResolvedSchema` is the same
with every fact known, and is all that an encoder ever sees. Here is what the kinds of data have in common; what is a
kind's own stands in :mod:`doublure.schema.tables`, :mod:`doublure.schema.images` and :mod:`doublure.schema.series`. All
show their columns alike: an image has one at most, its label; a series its channels and attributes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, cast

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from doublure.errors import SchemaError, counted, printable
from doublure.schema import display
from doublure.schema.columns import Column, Role, Value, label
from doublure.schema.columns.missing_kinds import STYLES
from doublure.schema.defaults import with_defaults
from doublure.schema.fact_states import UNDECLARED, Fact, Frozen, Learn
from doublure.schema.messages import one_line
from doublure.schema.release_words import ReleaseWords
from doublure.schema.rule_files import with_files
from doublure.schema.rule_patterns import with_patterns
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.rule_set import derived_by, derived_sources
from doublure.schema.scalars import Misfit, Positive
from doublure.schema.unit import UNIT_ID, Unit, people_in
from doublure.schema.written import Written
from doublure.support import yaml12 as yaml_text
from doublure.support.guessing import nearest_name


class Federated(Frozen):
    """Private data that lies with several owners (docs/federated.md).

    ``max_silos`` is how many of them hold records of the same unit, at most: it multiplies what a unit moves.
    ``need`` is how many have to be ready before anything is charged; None: every owner that is asked.
    """

    max_silos: Positive = 1
    need: Positive | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """One fact to buy: its path in the schema and its price."""

    path: str
    fact: str
    column: str | None
    epsilon: float
    magnitude: float | None


class Schema(Frozen):
    """The public facts of some private data; :meth:`parse` and :meth:`load` return the class of its kind.

    Attributes:
        unit: The unit of privacy.
        units: How many there are.
        misfit: What becomes of private data that does not fit: it is refused, or coerced by public rules. Left out, it
            is refused; with ``federated`` coerced, as the others would learn of a refusal that one record caused.
        release: What the cards of its releases say.
        federated: Whether private data lies with several owners, who answer for themselves.
        columns: Name -> what is known of it, in file order.
        constraints: Public knowledge about columns together.

    Example:
        >>> schema = Schema.parse('''
        ... doublure: 1
        ... kind: table
        ... units: 1000
        ... columns:
        ...   age: {type: integer, bounds: [0, 120], missing: false}
        ... ''')
        >>> schema.columns["age"].bounds
        (0, 120)
    """

    only_columns: ClassVar[bool] = False
    """Whether a record is its columns and nothing beside."""
    asked_by_cells: ClassVar[bool] = False
    """Whether a sample may be asked for any column, by what its cells are."""
    record: ClassVar[str] = "record"
    """The word for one record."""
    one_record: ClassVar[bool] = False
    """Whether a unit is always one record, so that no column has to tell units apart."""

    doublure: Literal[1] = Field(description="the version of this file format")
    kind: str
    unit: Unit = Unit()
    units: Fact[Positive] = UNDECLARED
    misfit: Misfit = Field(
        default="refuse",
        description="data that does not fit is refused, or changed cell by cell by public rules: coerce, which is the "
        "default with federated",
    )
    federated: Federated | None = None
    release: ReleaseWords | None = Field(default=None, description="what the cards of its releases say")

    @model_validator(mode="after")
    def _split_by_tables_alone(self) -> Self:
        if self.unit.per_unit and self.kind != SPLIT:
            raise ValueError("per_unit is for kind: table; of related tables, write what stays the same into the root")
        return self

    @model_validator(mode="before")
    @classmethod
    def _coerced_with_owners(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("federated") is not None and "misfit" not in data:
            return {**data, "misfit": "coerce"}
        return data

    if TYPE_CHECKING:

        @property
        def columns(self) -> Mapping[str, Column]:
            """Name -> column."""

        @property
        def constraints(self) -> tuple[Rule, ...]:
            """The rules that several columns obey together."""

    def __repr__(self) -> str:
        """Return what it describes in one line; its facts would fill pages."""
        return display.short(self)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    # -- reading and writing -------------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a schema file.

        Raises:
            SchemaError: The file is not a schema; the message names the key.

        Example:
            >>> db.Schema.load("people.schema.yaml").summary
            '3 columns'
        """
        if not isinstance(path, (str, Path)):
            raise SchemaError("is neither a schema nor a path", field="schema", remedy="give a Schema or its file")
        plain = with_files(yaml_text.load(Path(path), "schema"), Path(path).parent)
        return cls.from_plain(plain, Path(path).name)

    @classmethod
    def parse(cls, text: str, name: str = "schema") -> Self:
        """Read a schema from YAML text.

        Example:
            >>> text = "{doublure: 1, kind: table, units: 10, columns: {age: {type: integer, bounds: [0, 120]}}}"
            >>> db.Schema.parse(text).undeclared
            ('columns.age.missing',)
        """
        return cls.from_plain(yaml_text.parse(text, name), name)

    @classmethod
    def from_plain(cls, data: object, name: str = "schema") -> Self:
        """Build a schema from what YAML or JSON holds."""
        if not isinstance(data, dict):
            raise SchemaError("is not a mapping of keys", field=name, remedy="begin with doublure: 1 and kind: table")
        data = _with_kind(data)
        model = cls._model(data.get("kind"))
        model._check_keys(data)
        try:
            return model.model_validate(with_patterns(with_defaults(data)))
        except ValidationError as error:
            raise one_line(error, data) from None

    @classmethod
    def _model(cls, kind: object) -> type[Self]:
        """Return the class that reads this kind: :class:`Schema`'s or :class:`ResolvedSchema`'s own for it."""
        found = MODELS.get(kind) if isinstance(kind, str) else None
        if found is None and (near := nearest_name(str(kind), MODELS.keys() - {SPLIT})):
            raise SchemaError(
                f"{printable(str(kind))} is not a kind of data", field="kind", remedy=f"did you mean {near}?"
            )
        # What is near to no kind is refused by a table's own model, which says what may stand there.
        return cast("type[Self]", (found or MODELS["table"])[issubclass(cls, ResolvedSchema)])

    @classmethod
    def of(cls, schema: object, otherwise: Exception | None = None) -> Self:
        """Return a schema as one of this class, for code that serves no other.

        Args:
            schema: Of whatever kind, or none at all; one of visits is also one of related tables.
            otherwise: What is raised where it is of another; a TypeError if not given.
        """
        for view in (schema, getattr(schema, "related", None)):
            if isinstance(view, cls):
                return view
        raise otherwise or TypeError(f"{cls.__name__} is needed, and {type(schema).__name__} was given")

    @classmethod
    def _check_keys(cls, data: Mapping[str, Any]) -> None:
        """Refuse keys that YAML reads as something else than their author meant."""

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON Schema of the file format, for editors that complete and check YAML.

        Example:
            >>> db.Schema.json_schema()["$schema"]
            'https://json-schema.org/draft/2020-12/schema'
        """
        models: Any = reduce(or_, (model for kind, (model, _) in MODELS.items() if kind != SPLIT))
        found = TypeAdapter(Annotated[models, Field(discriminator="kind")]).json_schema()
        _as_files_say(found["$defs"])
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_any_of(found)}

    def to_plain(self) -> dict[str, Any]:
        """Return the schema as JSON and YAML can hold it; defaults that say nothing are left out."""
        data = self.model_dump(mode="json", exclude_none=True)
        if self.misfit == "refuse" and self.federated is None:
            del data["misfit"]
        if self.release is not None:
            data["release"] = self.release.model_dump(mode="json", exclude_defaults=True)
        data["unit"] = self.unit.model_dump(mode="json")
        return data

    def to_yaml(self) -> str:
        """Return the schema file's text.

        Example:
            >>> print(schema.to_yaml())
            doublure: 1
            kind: table
            ...
            columns:
              age: {type: integer, bounds: [17, 90], missing: false}
            ...
        """
        return yaml_text.dump(self.to_plain())

    def save(self, path: str | Path) -> None:
        """Write the schema file.

        Example:
            >>> schema.save("copy.schema.yaml")
            >>> db.Schema.load("copy.schema.yaml") == schema
            True
        """
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    @property
    def sha256(self) -> str:
        """The SHA-256 of the schema's canonical JSON.

        Example:
            >>> schema.sha256 == db.Schema.parse(schema.to_yaml()).sha256
            True
        """
        text = json.dumps(self.to_plain(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    # -- questions -----------------------------------------------------------------------------------------------

    def with_role(self, role: Role) -> tuple[str, ...]:
        """Return the names of the columns that have this role, in file order.

        Example:
            >>> schema.with_role("target"), schema.with_role("condition")
            (('income',), ('sex',))
        """
        return tuple(name for name, column in self.columns.items() if role in column.roles)

    @property
    def unshared(self) -> tuple[str, ...]:
        """The conditions of whose values no shares are declared or asked for."""
        return tuple(name for name in self.with_role("condition") if self.columns[name].fact("shares") is None)

    @property
    def unshared_in_words(self) -> tuple[str, str]:
        """The words for :attr:`unshared` in a sentence: that they are conditions, and whose their values are."""
        return ("is a condition", "its") if len(self.unshared) == 1 else ("are conditions", "their")

    @property
    def target(self) -> str | None:
        """The target column, if there is one."""
        return next(iter(self.with_role("target")), None)

    @property
    def derived(self) -> dict[str, str]:
        """Columns that follow from another (``equal``, ``determines``) and are not modelled: ``{derived: source}``."""
        return derived_by(self.constraints)

    @property
    def beside(self) -> frozenset[str]:
        """Columns that are counted together with another, as one variable (``point``)."""
        return frozenset(name for rule in self.constraints for name in rule.beside)

    @property
    def repeated(self) -> dict[str, str]:
        """Those of :attr:`derived` that say the same as their source, value by value."""
        return derived_by(self.constraints, repeated=True)

    @property
    def questions(self) -> tuple[Question, ...]:
        """The facts to be bought, in the order in which they can be learned."""
        return tuple(
            Question(path=path, fact=fact, column=column, epsilon=value.learn, magnitude=value.magnitude)
            for path, fact, column, value in self._facts()
            if isinstance(value, Learn)
        )

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The paths of the facts that are not decided yet.

        Example:
            >>> db.draft("people.csv").undeclared
            ('units', 'columns.age.missing', ...)
        """
        open_facts = (path for path, _, _, value in self._facts() if isinstance(value, str) and value == UNDECLARED)
        return (*((UNIT_ID,) if self.open_ids else ()), *open_facts)

    @property
    def open_ids(self) -> tuple[str, ...]:
        """The columns that are ids where nothing says whose: those named as people's first."""
        unit = self.unit
        if self.one_record or unit.id is not None or unit.each_record:
            return ()
        ids = [name for name, column in self.columns.items() if column.identifies]
        return tuple(sorted(ids, key=lambda name: people_in(name) is None))

    @property
    def one_each(self) -> bool:
        """Whether data in which a unit has more than one record does not fit, and is refused."""
        return self.misfit == "refuse" and self.unit.id is not None and self.unit.max_records == 1

    @property
    def assumed(self) -> tuple[str, ...]:
        """Assumptions of a claim about units, where no column names them."""
        unit = self.unit
        if unit.id is not None or unit.each_record or unit.name == self.record:
            return ()
        return (f"no {unit.name} has more than one {self.record}",)

    def _facts(self) -> Iterator[tuple[str, str, str | None, object]]:
        yield "units", "units", None, self.units
        for fact in ("missing", "values", "bounds", "shares"):
            for name, column in self.columns.items():
                if fact in column.facts or fact == "shares":
                    yield f"{self.path_of(name)}.{fact}", fact, name, column.fact(fact)

    @property
    def written(self) -> Written | None:
        """The text form of its files; None where it is the default."""
        return None

    @property
    def cell_form(self) -> Written:
        """The form of its cells in files and DataFrames."""
        return self.written or Written(columns=self.columns)

    @property
    def cautions(self) -> tuple[tuple[str, str], ...]:
        """Entries that may be misunderstood, by public facts alone: (path, message)."""
        return ()

    @property
    def unit_in_words(self) -> str:
        """A unit that is one record, and what that is for a reader of a card."""
        return f"{self.unit.name} (one row of a table)"

    @property
    def limits(self) -> tuple[str, ...]:
        """Sentences that a card of a release adds to those of the kind."""
        unit = self.unit
        if self.used:
            return (f"Figures are {self.used}.",)
        if unit.id is None or unit.max_records > 1 or self.one_record:
            return ()
        return (f"Each {unit.name} is one {self.record}, named by {unit.id}: what has two names there counts as two.",)

    @property
    def used(self) -> str:
        """The rows that figures are about, in words, where a unit may have several; empty elsewhere."""
        return ""

    @property
    def summary(self) -> str:
        """Its content in two words."""
        return counted(len(self.columns), "column")

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """The columns that follow from others by a rule, each with all of these."""
        return derived_sources(self.constraints)

    @property
    def each_table(self) -> Mapping[str, Schema]:
        """The schema of each table by itself, by the path in the file before its columns and rules."""
        return {"": self} if self.only_columns else {}

    @property
    def copied(self) -> Mapping[str, Column]:
        """The columns of public tables that every sample has a copy of, as ``table.column``."""
        return {}

    @property
    def explained_rules(self) -> tuple[str, ...]:
        """The rules, a line each."""
        return tuple(rule.explain(self.columns) for rule in self.constraints)

    @property
    def origins(self) -> tuple[str, ...]:
        """Where the cells of columns come from that are not drawn, a line each; plain numbers of rows aside."""
        found: dict[str, list[str]] = {}
        for name, column in self.columns.items():
            if column.origin is not None:
                found.setdefault(column.origin, []).append(printable(name))
        return tuple(f"{', '.join(names)}: {origin}" for origin, names in found.items())

    def ready(self) -> None:
        """Refuse columns that could not be made in a sample: a library is missing, or a pattern has too few texts.

        Raises:
            SettingError, MissingExtra: Naming the column.
        """
        for name, column in self.columns.items():
            column.ready(name, self.public_units if self.only_columns else 0)

    def path_of(self, name: str) -> str:
        """Return where a column stands in the file."""
        return f"columns.{name}"

    def asked(self, name: str) -> str:
        """Return which column a sample is asked by, of a name that was given."""
        return name

    def cells_of(self, column: str | None, fact: str) -> int:
        """Return how many cells of a column one record adds to the statistic that answers a question: public."""
        return 1

    @property
    def max_silos(self) -> int:
        """The most owners that have records of the same unit."""
        return 1 if self.federated is None else self.federated.max_silos

    @property
    def most_records(self) -> int:
        """The most records of a unit that are used, over all owners."""
        return self.unit.max_records * self.max_silos

    @property
    def used_records(self) -> int:
        """The most records of a unit that are used, as a claim says it: rows, also where a unit is drawn as a whole."""
        return self.most_records

    @property
    def flat(self) -> Schema:
        """The schema by which records are evaluated and attacked: of a table each row by itself."""
        return self

    @property
    def file_kind(self) -> str:
        """The kind by the name that its files give it."""
        return self.kind

    @property
    def row_note(self) -> str | None:
        """A line about samples in which no unit has several records; None where units have, or are single records."""
        return None

    @property
    def public_units(self) -> int:
        """The public number of units: declared, or the order of magnitude given for learning it.

        Raises:
            SchemaError: Neither is known.
        """
        if isinstance(self.units, int):
            return self.units
        if isinstance(self.units, Learn) and self.units.magnitude is not None:
            return max(1, round(self.units.magnitude))
        raise SchemaError(
            "the number of units sets the sampling rate and must have a public size",
            field="units",
            remedy="declare units: 10000, or {learn: 0.01, magnitude: 10000}",
        )

    def resolve(self, learned: Mapping[str, Any]) -> ResolvedSchema:
        """Fill in what was learned.

        Args:
            learned: Path of a question -> its answer.

        Raises:
            SchemaError: A question has no answer, or an answer contradicts another fact.
        """
        data = self.model_dump(mode="python", exclude_none=True)
        answers = self._fixed(learned)
        for question in self.questions:
            if question.path not in answers:
                raise SchemaError("was not learned", field=question.path, remedy="declare it")
            place = data if question.column is None else self._place(data, question.column)
            place[question.fact] = answers[question.path]
        try:
            return ResolvedSchema._model(self.kind).model_validate(data)
        except ValidationError as error:
            raise one_line(error) from None

    def _fixed(self, learned: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers, made to agree with the declared facts."""
        return dict(learned)

    def _place(self, data: dict[str, Any], column: str) -> dict[str, Any]:
        """Return where a column's facts stand in a dump."""
        place: dict[str, Any] = data["columns"][column]
        return place


class ResolvedSchema(Schema):
    """A schema in which every fact is known. The encoder's only input."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        open_facts = [question.path for question in self.questions] + list(self.undeclared)
        if open_facts := [path for path in open_facts if path != UNIT_ID]:  # runs of 0.2.0 were not asked whose it is
            raise ValueError(f"{printable(open_facts[0])} is not known yet; declare it, or let fit learn it")
        return self


SPLIT = "visits"
"""The kind of a table whose unit has ``per_unit`` (:mod:`doublure.schema.visits`). Files call it a table."""
MODELS: dict[str, tuple[type[Schema], type[ResolvedSchema]]] = {}
"""Kind of data -> the models that read it, open facts allowed or not; :mod:`doublure.schema.kinds` fills it."""


def _with_kind(data: dict[str, Any]) -> dict[str, Any]:
    """Return a file's plain data with the kind that reads it."""
    unit = data.get("unit")
    if data.get("kind") == "table" and isinstance(unit, Mapping) and unit.get("per_unit"):
        return {**data, "kind": SPLIT}
    return {**data, "kind": f"{SPLIT}?"} if data.get("kind") == SPLIT else data


def domain_of(schema: Schema, name: str) -> tuple[Value, ...]:
    """Return the values of a column's list; none where it has no list, or there is no such column."""
    column = schema.columns.get(name)
    return () if column is None else tuple(column.domain)


def _as_files_say(definitions: dict[str, Any]) -> None:
    """Add what a file may say and no model holds: defaults, styles, groups, and values in a file beside it."""
    style = {"type": "object", "properties": {"style": {"enum": list(STYLES)}}, "required": ["style"]}
    for model in definitions.values():
        if "missing" in (own := model.get("properties", {})):
            own["missing"] = {"anyOf": [own["missing"], {**style, "additionalProperties": False}]}
    missing = next(model["properties"]["missing"] for name, model in definitions.items() if name == "IntegerColumn")
    groups = {"type": "array", "items": {"type": "array", "items": {"type": "string"}, "minItems": 1}}
    for model in definitions.values():
        own = model.get("properties", {})
        if "kind" in own and "columns" in own:
            own["missing_together"] = groups
        if "kind" in own and {"columns", "channels", "tables"} & set(own):
            own["defaults"] = {"type": "object", "properties": {"missing": missing}, "additionalProperties": False}
        if "values" in own and "missing" in own:
            file = {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]}
            own["values"] = {"anyOf": [own["values"], {**file, "additionalProperties": False}]}


def _any_of(schema: Any) -> Any:
    """Let several forms fit: {learn: 0.05} is also a mapping of shares, which oneOf would refuse."""
    if isinstance(schema, dict):
        return {"anyOf" if key == "oneOf" else key: _any_of(value) for key, value in schema.items()}
    return [_any_of(item) for item in schema] if isinstance(schema, list) else schema


__all__ = ["Question", "ResolvedSchema", "Schema", "Unit", "domain_of", "label"]
