"""The public facts of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator
from typing_extensions import override

from doublure.errors import SchemaError, printable
from doublure.schema.columns import AnyColumn
from doublure.schema.fact_states import plain
from doublure.schema.resolving import agree
from doublure.schema.rules.registry import AnyRule
from doublure.schema.rules.rule_set import check_rules
from doublure.schema.scalars import check_name
from doublure.schema.schema import ResolvedSchema, Schema
from doublure.schema.written import TextForm, Written
from doublure.support import yaml12 as yaml_text

_MOST_COLUMNS = 10_000


class TableSchema(TextForm, Schema):
    """The public facts of a table."""

    only_columns: ClassVar[bool] = True
    asked_by_cells: ClassVar[bool] = True

    kind: Literal["table"]
    columns: Mapping[str, AnyColumn]
    constraints: tuple[AnyRule, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.columns:
            raise ValueError("columns is empty; describe at least one column")
        if len(self.columns) > _MOST_COLUMNS:
            raise ValueError(f"columns has more than {_MOST_COLUMNS} entries; split the table")
        if not any(column.modelled for column in self.columns.values()):
            raise ValueError("columns has only ids or others that are not learned; describe at least one to learn")
        for name, column in self.columns.items():
            check_name(name)
            column.check_beside(self.columns, name)
        self.check_dates(self.columns)
        if self.unit.id is not None and not (self.unit.id in self.columns and self.columns[self.unit.id].identifies):
            raise ValueError(f"unit.id names {printable(self.unit.id)}; describe that column with type: id")
        for role in ("target", "weight"):
            if len(self.with_role(role)) > 1:
                raise ValueError(f"two columns have the role {role}; keep one")
        check_rules(self.constraints, self.columns)
        return self

    @property
    @override
    def written(self) -> Written | None:
        return self.written_as(self.columns)

    @property
    @override
    def used(self) -> str:
        unit = self.unit
        rows = f"the rows that were used: of each {unit.name} at most {unit.max_records}, in a file the first ones"
        return f"about {rows}" if unit.max_records > 1 else ""

    @property
    @override
    def row_note(self) -> str | None:
        return None if self.unit.id is None else f"each synthetic row is another {self.unit.name}: no id repeats"

    @classmethod
    @override
    def _check_keys(cls, data: Mapping[str, Any]) -> None:
        columns = data.get("columns")
        for key in columns if isinstance(columns, dict) else ():
            if not isinstance(key, str):
                field = f"columns.{yaml_text.inline(key)}"
                raise SchemaError("is a name that YAML reads as no text", field=field, remedy="put it in quotes")

    @override
    def to_plain(self) -> dict[str, Any]:
        data = super().to_plain()
        for name, column in self.columns.items():
            written = column.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            facts = {fact: _json(plain(column.fact(fact))) for fact in column.facts}
            data["columns"][name] = {"type": column.type} | facts | written
        if not self.constraints:
            data.pop("constraints", None)
        return data

    @override
    def to_yaml(self) -> str:
        plain_data = self.to_plain()
        columns = plain_data.pop("columns")
        constraints = plain_data.pop("constraints", None)
        text = yaml_text.dump(plain_data) + "columns:\n"
        for name, column in columns.items():
            text += f"  {yaml_text.inline(name)}: {yaml_text.inline(column)}\n"
        return text if constraints is None else text + yaml_text.dump({"constraints": constraints})

    @override
    def _fixed(self, learned: Mapping[str, Any]) -> dict[str, Any]:
        return agree(self.columns, self.constraints, learned)


class ResolvedTableSchema(TableSchema, ResolvedSchema):
    """The facts of a table, all of them known."""


def _json(value: object) -> object:
    if isinstance(value, tuple):
        return [item.isoformat() if hasattr(item, "isoformat") else item for item in value]
    return value
