"""Conditions: the discrete columns that steer what is drawn, whatever the kind of data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from doublure.encode.grids import Floats
from doublure.errors import SettingError
from doublure.schema import Schema
from doublure.schema.columns import Column, label
from doublure.support.guessing import suggest
from doublure.support.tensors import Array


def condition_codes(schema: Schema, given: Mapping[str, object]) -> dict[str, int]:
    """Return the code of each given value of a discrete column.

    Raises:
        SettingError: There is no such column, it has no list of values, or the value is not in its list.
    """
    codes = {}
    for name, value in given.items():
        field = f"given {name}"
        if name not in schema.columns:
            raise SettingError(
                "is not a column of the schema",
                field=field,
                remedy=suggest(name, schema.columns, otherwise="see schema.yaml"),
            )
        column = schema.columns[name]
        if not column.domain:
            raise SettingError("has no list of values", field=field, remedy="ask for a category, ordinal or boolean")
        try:
            codes[name] = int(column.number_of(value))
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            raise SettingError(message, field=field, remedy=remedy) from None
    return codes


def drawn(
    sizes: Mapping[str, int],
    shares: Mapping[str, Floats],
    n: int,
    rng: np.random.Generator,
    fixed: Mapping[str, int | Sequence[int]] | None,
) -> Array:
    """Return ``(n, K)`` float32 one-hot blocks: of each condition its value, asked for or drawn.

    Args:
        sizes: Condition -> the size of its block, in order.
        shares: Condition -> how frequent its values are.
        n: How many.
        rng: Draws them.
        fixed: Condition -> the code that is asked for, or several, any of which will do.
    """
    rows, start = np.zeros((n, sum(sizes.values())), dtype=np.float32), 0
    for name, size in sizes.items():
        codes = drawn_codes(shares[name], n, rng, (fixed or {}).get(name))
        rows[np.arange(n), start + codes] = 1.0
        start += size
    return rows


def drawn_codes(
    shares: Floats, n: int, rng: np.random.Generator, fixed: int | Sequence[int] | None
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return ``(n,)`` codes of a condition, of those asked for if any were, drawn from their shares."""
    if fixed is None:
        return rng.choice(len(shares), size=n, p=shares)
    codes = np.atleast_1d(np.array(fixed, dtype=np.int64))
    if len(codes) == 1:
        return np.full(n, codes[0], dtype=np.int64)
    own = shares[codes] + np.finfo(float).tiny
    return rng.choice(codes, size=n, p=own / own.sum())


def shares_of(column: Column, size: int) -> Floats:
    """Return the class shares of a condition, in the order of its codes."""
    shares = column.fact("shares")
    if not isinstance(shares, Mapping):
        return np.full(size, 1.0 / size)
    weights: Floats = np.array([shares[label(value)] for value in column.domain])
    shared: Floats = weights / weights.sum()
    return shared
