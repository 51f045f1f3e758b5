"""Arithmetic on columns: a small grammar of formulas, and the range of what they give.

A formula has numbers, names of columns, ``+ - * /``, parentheses and a few functions. A name that is no plain word
stands between backquotes. Text is parsed by Python's own parser and walked over a list of permitted nodes: nothing is
ever evaluated as code.
"""

from __future__ import annotations

import ast
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from typing_extensions import override

from doublure.errors import printable

_LONGEST = 1_000
_QUOTED = re.compile(r"`([^`]*)`")
_FORM = "write numbers, names of columns, + - * /, parentheses, and min, max, abs, floor or round"


class ValueRange(NamedTuple):
    """The range of a number.

    Attributes:
        low: The lowest.
        high: The highest.
        hole: Whether there may be none although every column has a cell.
    """

    low: float
    high: float
    hole: bool = False


class ColumnFormula(ABC):
    """A number that follows from columns."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns that it names, each once, in order."""

    @abstractmethod
    def value(self, cells: Mapping[str, Any]) -> Any:
        """Return the ``(N,)`` numbers of rows, NaN where there are none."""

    @abstractmethod
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        """Return its range, of the ranges of its columns; it may be wider than what rows can have."""


@dataclass(frozen=True)
class _ConstantNumber(ColumnFormula):
    number: float

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return ()

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        return self.number

    @override
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        return ValueRange(self.number, self.number)


@dataclass(frozen=True)
class ColumnName(ColumnFormula):
    """A column's own cells."""

    name: str

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        return cells[self.name]

    @override
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        return ends[self.name]


@dataclass(frozen=True)
class AppliedOperation(ColumnFormula):
    """An operation on formulas.

    Attributes:
        word: Its sign or name.
        parts: What it is applied to.
    """

    word: str
    parts: tuple[ColumnFormula, ...]

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for part in self.parts for name in part.names))

    @override
    def value(self, cells: Mapping[str, Any]) -> Any:
        import numpy as np

        with np.errstate(all="ignore"):  # what is no number becomes a missing cell
            found = _VALUES[self.word](np, *(part.value(cells) for part in self.parts))
            return np.where(np.isfinite(found), found, np.nan)

    @override
    def reach(self, ends: Mapping[str, ValueRange]) -> ValueRange:
        own = [part.reach(ends) for part in self.parts]
        found = _REACHES[self.word](*own)
        low, high = _ascending(found.low, found.high)
        return ValueRange(low, high, found.hole or any(each.hole for each in own))


def parse_formula(text: str) -> ColumnFormula:
    """Return a formula.

    Raises:
        ValueError: It is none; ``message; remedy``.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"formula has more than {_LONGEST} characters; shorten it")
    quoted: dict[str, str] = {}

    def placed(found: re.Match[str]) -> str:
        return quoted.setdefault(found[1], f"_quoted_{len(quoted)}_")

    try:
        plain = _QUOTED.sub(placed, text).strip()
        tree = ast.parse(plain, mode="eval").body
        found = _walked(tree, {place: name for name, place in quoted.items()})
        _ = found.names  # one nested too deeply for Python's stack is refused here
        return found
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, OverflowError) as error:
        said = str(error) if isinstance(error, _NotPermitted) else f"formula is none that can be read; {_FORM}"
        raise ValueError(said) from None


class _NotPermitted(ValueError):
    """A part of a formula that the grammar lacks."""


_OPERATIONS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_ARGUMENTS = {"min": (2, 9), "max": (2, 9), "abs": (1, 1), "floor": (1, 1), "round": (1, 1)}


def _walked(node: ast.expr, quoted: Mapping[str, str]) -> ColumnFormula:
    if isinstance(node, ast.Constant):
        number = node.value
        if isinstance(number, (int, float)) and not isinstance(number, bool) and math.isfinite(number):
            return _ConstantNumber(float(number))
    if isinstance(node, ast.Name):
        return ColumnName(quoted.get(node.id, node.id))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        return AppliedOperation(_OPERATIONS[type(node.op)], (_walked(node.left, quoted), _walked(node.right, quoted)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub)):
        own = _walked(node.operand, quoted)
        return own if isinstance(node.op, ast.UAdd) else AppliedOperation("-", (_ConstantNumber(0.0), own))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        least, most = _ARGUMENTS.get(node.func.id, (1, 0))
        if least <= len(node.args) <= most:
            return AppliedOperation(node.func.id, tuple(_walked(each, quoted) for each in node.args))
        name = printable(quoted.get(node.func.id, node.func.id))
        said = "has another number of arguments" if most else "is no function of formulas"
        raise _NotPermitted(f"{name} {said}; {_FORM}")
    raise _NotPermitted(f"formula has a part that is not permitted; {_FORM}")


_VALUES: Mapping[str, Callable[..., Any]] = {
    "+": lambda np, left, right: left + right,
    "-": lambda np, left, right: left - right,
    "*": lambda np, left, right: left * right,
    "/": lambda np, left, right: np.true_divide(left, right),
    "min": lambda np, *parts: _folded(np.minimum, parts),
    "max": lambda np, *parts: _folded(np.maximum, parts),
    "abs": lambda np, part: np.abs(part),
    "floor": lambda np, part: np.floor(part),
    "round": lambda np, part: np.rint(part),
}


def _folded(operation: Callable[[Any, Any], Any], parts: tuple[Any, ...]) -> Any:
    found = parts[0]
    for part in parts[1:]:
        found = operation(found, part)
    return found


def _times(left: ValueRange, right: ValueRange) -> ValueRange:
    corners = [_product(one, other) for one in (left.low, left.high) for other in (right.low, right.high)]
    return ValueRange(min(corners), max(corners))


def _product(left: float, right: float) -> float:
    return 0.0 if 0.0 in (left, right) else left * right  # nothing of something endless is nothing


def _over(left: ValueRange, right: ValueRange) -> ValueRange:
    if right.low <= 0 <= right.high:
        return ValueRange(-math.inf, math.inf, hole=True)
    return _times(left, ValueRange(1 / right.high, 1 / right.low))


def _magnitude(part: ValueRange) -> ValueRange:
    low, high = _ascending(abs(part.low), abs(part.high))
    return ValueRange(0.0 if part.low <= 0 <= part.high else low, high)


_REACHES: Mapping[str, Callable[..., ValueRange]] = {
    "+": lambda left, right: ValueRange(left.low + right.low, left.high + right.high),
    "-": lambda left, right: ValueRange(left.low - right.high, left.high - right.low),
    "*": _times,
    "/": _over,
    "min": lambda *parts: ValueRange(min(part.low for part in parts), min(part.high for part in parts)),
    "max": lambda *parts: ValueRange(max(part.low for part in parts), max(part.high for part in parts)),
    "abs": _magnitude,
    "floor": lambda part: ValueRange(_whole(math.floor, part.low), _whole(math.floor, part.high)),
    "round": lambda part: ValueRange(_whole(round, part.low), _whole(round, part.high)),
}


def _whole(rounded: Callable[[float], float], number: float) -> float:
    return float(rounded(number)) if math.isfinite(number) else number


def _ascending(one: float, other: float) -> tuple[float, float]:
    """Return two ends in order; one that is no number is open."""
    ends = (-math.inf if math.isnan(one) else one, math.inf if math.isnan(other) else other)
    return min(ends), max(ends)
