"""The three states a fact about private data can be in.

A fact is *declared* (the value itself, public knowledge), *learned* (``{learn: epsilon}``: bought from the data with
a differentially private mechanism, inside the plan's budget) or *undeclared* (not decided yet; the plan
refuses, naming the field and the ways out). An omitted fact equals ``undeclared``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, Discriminator, Field, Tag

from doublure.errors import SchemaError
from doublure.models import Model

Undeclared: TypeAlias = Literal["undeclared"]
UNDECLARED: Undeclared = "undeclared"

Declared = TypeVar("Declared")


class KeyFault(ValueError):
    """A key of a column contradicts itself or another key.

    Args:
        key: The key.
        said: What is wrong with it, and behind a semicolon the remedy.
        subject: What that is said of; None: the key.
    """

    def __init__(self, key: str, said: str, *, subject: str | None = None) -> None:
        super().__init__(f"{subject or key} {said}")
        self.key = key


class Frozen(Model):
    """A part of a schema: a model that refuses unknown keys and cannot be changed."""


class Learn(Frozen):
    """A fact to be bought: ``{learn: 0.05}`` spends ε = 0.05 on it.

    ``magnitude`` is an optional public hint of the size to expect; it narrows the search and costs nothing.
    """

    learn: float = Field(gt=0, strict=True, description="the ε spent on this fact")
    magnitude: float | None = Field(default=None, gt=0, strict=True, description="public order of magnitude")


def _state(value: object) -> str:
    if value is None or (isinstance(value, str) and value == UNDECLARED):
        return "undeclared"
    if isinstance(value, Learn) or (isinstance(value, Mapping) and "learn" in value):
        return "learn"
    return "declared"


def blank_is_undeclared(value: object) -> object:
    """Read an empty value as ``undeclared``."""
    return UNDECLARED if value is None else value


_LearnTag = Annotated[Learn, Tag("learn")]
_UndeclaredTag = Annotated[Undeclared, Tag("undeclared")]

Fact = Annotated[
    Annotated[Declared, Tag("declared")] | _LearnTag | _UndeclaredTag,
    Discriminator(_state),
    BeforeValidator(blank_is_undeclared),
]
"""``Fact[T]``: a declared ``T``, a :class:`Learn`, or ``undeclared``."""

OptionalFact = Annotated[
    Annotated[Declared, Tag("declared")] | _LearnTag | Annotated[None, Tag("undeclared")],
    Discriminator(_state),
]
"""``OptionalFact[T]``: a declared ``T``, a :class:`Learn`, or nothing, where nothing is a public choice too."""


def known(fact: Declared | Learn | Undeclared, field: str) -> Declared:
    """Return the declared value.

    Raises:
        SchemaError: The fact is still to be learned or undeclared.
    """
    if isinstance(fact, Learn) or (isinstance(fact, str) and fact == UNDECLARED):
        raise SchemaError("is not known yet", field=field, remedy="declare it or let fit() learn it first")
    return fact


def plain(value: Any) -> Any:
    """Return a model, tuple or date as what JSON and YAML can hold."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_none=True)
    return value


def listed(value: object) -> object:
    """Return a tuple as a list, as YAML writes it; anything else as it is."""
    return list(value) if isinstance(value, tuple) else value
