"""The rules that a schema can name, and rules read by their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import Discriminator, Tag

from doublure.schema.rules.age import CompletedYears
from doublure.schema.rules.at_most import AtMost
from doublure.schema.rules.combinations import Combinations
from doublure.schema.rules.determines import Determines
from doublure.schema.rules.difference import ColumnDifference
from doublure.schema.rules.equal import Equal
from doublure.schema.rules.formula import FormulaResult
from doublure.schema.rules.implies import Implies
from doublure.schema.rules.missing_together import MissingTogether
from doublure.schema.rules.point import MapPoint
from doublure.schema.rules.product import ColumnProduct
from doublure.schema.rules.range import ColumnRange
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.sum import Sum

MODELS: tuple[type[Rule], ...] = (
    *(Equal, AtMost, Implies, Determines, Sum, Combinations),
    *(ColumnDifference, CompletedYears, ColumnProduct, FormulaResult, ColumnRange, MissingTogether, MapPoint),
)


def make_union(models: Sequence[type[Rule]]) -> Any:
    """Return the type of any of some rules, told apart by their words."""

    def word(data: object) -> str | None:
        for model in models:
            if isinstance(data, model) or (isinstance(data, Mapping) and model.word in data):
                return model.word
        return None

    return Annotated[reduce(or_, (Annotated[model, Tag(model.word)] for model in models)), Discriminator(word)]


if TYPE_CHECKING:
    AnyRule: TypeAlias = Rule
else:
    AnyRule = make_union(MODELS)
    """A rule of a schema file. The only place where rules are a union."""
