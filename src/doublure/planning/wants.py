"""The least ε whose forecast of errors grants what readers of a release want.

A file of wants is a list::

    - {column: income, value: ">50K", within: 0.05}     # its rows ± 5 %, in 95 of 100 fits
    - {column: age, within: 0.02}                       # total variation of the column
    - {pair: [age, income], within: 0.05}               # total variation of both together
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictStr, ValidationError, field_validator, model_validator

from doublure.errors import SettingError, printable
from doublure.intervals import IN_95_OF_100
from doublure.methods import registry
from doublure.methods.method import ErrorForecast
from doublure.models import worded
from doublure.planning.plans import Plan, plan
from doublure.schema import Schema
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.rule_set import computed_advice
from doublure.schema.scalars import label
from doublure.support import yaml12

FLAG = "want"
_TRIED = [float(f"{digits / 10 * 10.0**power:.2g}") for power in (-2, -1, 0, 1) for digits in range(10, 100)] + [100.0]
"""Two digits each: a budget is agreed on by people."""


class WantedError(Frozen):
    """An error that a reader accepts.

    Attributes:
        column: A column that is counted.
        pair: Or two of them.
        value: A listed value of the column, whose rows are wanted.
        rows: Its rows, as the public knows them; left out where the schema declares shares.
        within: The most error: of a value a share of its rows, else a total variation distance.
    """

    column: StrictStr | None = None
    pair: tuple[StrictStr, StrictStr] | None = None
    value: StrictStr | None = None
    rows: Annotated[float, Field(gt=0)] | None = None
    within: Annotated[float, Field(gt=0, le=1)]

    @field_validator("value", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        return value if value is None else label(value)

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.column is None) == (self.pair is None):
            raise ValueError("needs a column or a pair, one of the two")
        if self.pair and self.pair[0] == self.pair[1]:
            raise ValueError("needs two columns as a pair")
        if self.value is not None and self.column is None:
            raise ValueError("has a value, which needs column in place of pair")
        if self.rows is not None and self.value is None:
            raise ValueError("has rows, which are those of a value")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""
        return self.pair or (self.column or "",)

    @property
    def words(self) -> str:
        """It, in a few words."""
        if self.value is not None:
            return f"{printable(self.column)} = {printable(self.value)} ± {self.within:.2%}".replace(".00%", "%")
        return f"{' and '.join(map(printable, self.names))} within {self.within:g}"


@dataclass(frozen=True, kw_only=True)
class GrantedPlan:
    """A plan of the least ε.

    Attributes:
        plan: The plan.
        errors: Each want, and the error that the plan forecasts of it, in the want's own measure.
    """

    plan: Plan
    errors: tuple[tuple[WantedError, float], ...]

    def explain(self) -> str:
        """Return a line about each want."""
        said = [f"Wanted: {want.words}; forecast {_said(want, error)}" for want, error in self.errors]
        return "\n".join([f"Least ε that grants all wants: {self.plan.epsilon:g}", *said])


def read_wants(
    source: str | Path | Iterable[Mapping[str, Any]], schema: Schema, counted: Collection[str]
) -> tuple[WantedError, ...]:
    """Read wants, and check them against the public facts.

    Args:
        source: A YAML file, or its list.
        schema: The public facts.
        counted: The columns whose errors are forecast.

    Raises:
        SettingError: Naming every want that cannot be read or answered.
    """
    listed = yaml12.load(Path(source), "wants") if isinstance(source, (str, Path)) else source
    if not isinstance(listed, Iterable) or isinstance(listed, (str, Mapping)) or not (given := list(listed)):
        raise SettingError(
            "is no list of wants", field=FLAG, remedy="write lines such as - {column: age, within: 0.02}"
        )
    read, faults = [], list[str]()
    for number, entry in enumerate(given, 1):
        try:
            want = WantedError.model_validate(entry)
        except ValidationError as error:
            faults.append(f"want {number} {_fault(error)}")
            continue
        faults += [f"want {number} {fault}" for fault in _unanswerable(want, schema, counted)]
        read.append(want)
    if faults:
        raise SettingError(f"cannot be answered: {', and '.join(faults)}", field=FLAG, remedy="fix the file")
    return tuple(read)


def least_epsilon(
    schema: Schema | str | Path,
    wants: str | Path | Iterable[Mapping[str, Any]],
    *,
    method: str = "statistics",
    delta: float | None = None,
    accountant: Literal["auto", "pld", "rdp"] = "auto",
    **settings: Any,
) -> GrantedPlan:
    """Return the plan of the least ε, in two digits, whose own forecast grants all wants. Reads no data.

    Args:
        schema: The public facts (or the path of the file that holds them).
        wants: A YAML file of wants, or its list.
        method: A method that forecasts errors.
        delta: The total δ.
        accountant: As of :func:`doublure.plan`.
        settings: Settings of the method, by name.

    Raises:
        SettingError: A want cannot be answered, the method forecasts no errors, or no ε up to 100 is enough.

    Example:
        >>> from doublure.planning import least_epsilon
        >>> people = db.Schema.load(db.datasets.adult_schema_path())
        >>> found = least_epsilon(people, [{"pair": ["age", "income"], "within": 0.1}], delta=1e-6, accountant="rdp")
        >>> 0.1 < found.plan.epsilon < 2
        True
    """
    read = schema if isinstance(schema, Schema) else Schema.load(schema)

    def planned(epsilon: float) -> tuple[Plan, ErrorForecast]:
        made = plan(read, method=method, epsilon=epsilon, delta=delta, accountant=accountant, **settings)
        forecast = registry.method(made.method).expected_errors(read, made.settings, made.touches)
        if forecast is None:
            remedy = "use method statistics, on a table"
            raise SettingError("forecasts no errors of counts", field=f"method {made.method}", remedy=remedy)
        return made, forecast

    def judged(made: Plan, forecast: ErrorForecast) -> GrantedPlan:
        return GrantedPlan(plan=made, errors=tuple((want, _error(want, read, forecast)) for want in asked))

    def tried(epsilon: float) -> GrantedPlan:
        return judged(*planned(epsilon))

    dearest = planned(_TRIED[-1])
    asked = read_wants(wants, read, dearest[1].columns)
    best = judged(*dearest)
    refused = [f"{want.words} ({_said(want, error)})" for want, error in best.errors if error > want.within]
    if refused:
        raise SettingError(
            f"is not granted by any ε up to {_TRIED[-1]:g}: {', '.join(refused)}",
            field=FLAG,
            remedy="accept more error",
        )
    low, high = 0, len(_TRIED) - 1
    while low < high:
        middle = (low + high) // 2
        if (found := _granted(tried, _TRIED[middle])) is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def _granted(tried: Callable[[float], GrantedPlan], epsilon: float) -> GrantedPlan | None:
    """Return the plan of an ε, or None if it does not grant all wants."""
    try:
        found = tried(epsilon)
    except SettingError as error:
        if error.field == "epsilon":  # too small an ε for any noise, or for the facts to be learned
            return None
        raise
    return found if all(error <= want.within for want, error in found.errors) else None


def _error(want: WantedError, schema: Schema, forecast: ErrorForecast) -> float:
    if want.value is None:
        return forecast.distance(want.names)
    return IN_95_OF_100 * forecast.spread(want.names[0]) / _rows(want, schema)


def _rows(want: WantedError, schema: Schema) -> float:
    """Return the public number of rows of a wanted value; 0 if it is not known."""
    shares = schema.columns[want.names[0]].fact("shares")
    declared = {label(value): share for value, share in shares.items()} if isinstance(shares, Mapping) else {}
    return want.rows or declared.get(want.value or "", 0.0) * schema.public_units


def _unanswerable(want: WantedError, schema: Schema, counted: Collection[str]) -> list[str]:
    unknown = [printable(name) for name in want.names if name not in counted]
    if computed := computed_advice(schema.sources, unknown):
        message, remedy = computed
        return [f"asks what is not counted: {message} ({remedy})"]
    if unknown:
        return [f"names no column that is counted ({', '.join(unknown)})"]
    if want.value is None:
        return []
    column = schema.columns[want.names[0]]
    if not column.listed or want.value not in map(label, column.domain):
        return [f"names no listed value of {printable(want.column)}"]
    if not _rows(want, schema) > 0 or not math.isfinite(_rows(want, schema)):
        return ["needs rows: the schema declares no shares of its column"]
    return []


def _fault(error: ValidationError) -> str:
    every = error.errors(include_url=False)
    if unknown := [printable(each["loc"][-1]) for each in every if each["type"] == "extra_forbidden"]:
        return (
            f"has a key that wants do not know ({', '.join(unknown)}); they know {', '.join(WantedError.model_fields)}"
        )
    first = every[0]
    if first["type"] == "model_type":
        return "is no mapping, such as {column: age, within: 0.02}"
    place = ".".join(str(part) for part in first["loc"])
    said = worded(first)
    return f"{printable(place)} {said}" if place else said


def _said(want: WantedError, error: float) -> str:
    if not math.isfinite(error):
        return "nothing"
    return f"± {error:.2%}" if want.value is not None else f"{error:.2g}"
