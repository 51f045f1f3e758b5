"""What goes over the network: questions and answers as JSON and arrays, read as if a stranger had written them.

No object is pickled, and nothing that arrives is trusted: what is not as described here is refused by name. Both ends
speak one version of this form, and say which.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from doublure.errors import InputError
from doublure.planning import Plan
from doublure.private.queries.axes import axis_of, described, whole
from doublure.private.queries.counts import Counts

VERSION = 2
"""Of this form; in the first one owners did not declare their units, and none that failed ended a run."""

HELLO, HEADER, BEGIN, END = "hello", "header", "begin", "end"
CHARGED = "charged"
"""Under which an owner says at the end whether a run stays charged."""

NUMBERS = frozenset("if")
"""Arrays of what may be sent: NumPy's letters of whole and of real numbers."""

UNITS = "units"
"""Under which an owner says how many units it declares."""

LENGTHS = "lengths"
"""Under which an owner of many units tells how long some units' gradients are."""

_MOST_TABLES, _MOST_CELLS = 10**6, 2**28
_FREE = ("seconds_estimate", "memory_bytes", "warnings")
"""What a plan says of the machine it was made on, and in other words with another version: it binds nobody."""

Arrays = dict[str, npt.NDArray[Any]]


class Said(NamedTuple):
    """One message: words as JSON holds them, and arrays by name."""

    words: dict[str, Any]
    arrays: Arrays


class Garbled(InputError):
    """What arrived is not in this form."""


def digest_of(plan: Plan) -> str:
    """Return the SHA-256 of all that binds in a plan."""
    said = json.loads(json.dumps(plan.to_json()))
    return _sha256({key: value for key, value in said.items() if key not in _FREE})


def digest_of_question(question: Said) -> str:
    """Return the SHA-256 of a question: what is asked, number by number."""
    arrays = {
        name: [array.dtype.str, list(array.shape), hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()]
        for name, array in question.arrays.items()
    }
    return _sha256({"words": question.words, "arrays": arrays})


def _sha256(said: object) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


# -- questions that count ----------------------------------------------------------------------------------------------


def counts_said(query: Counts) -> Said:
    """Return what says which tables to count; how many records a unit has, each owner knows by itself."""
    axes = {id(axis): axis for table in query.tables for axis in table}
    places = {key: place for place, key in enumerate(axes)}
    tables = {id(table): [places[id(axis)] for axis in table] for table in query.tables}
    order = {key: place for place, key in enumerate(tables)}
    axes_said: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for place, axis in enumerate(axes.values()):
        words, numbers = described(axis)
        axes_said.append(words)
        arrays |= named(numbers, place)
    words = {"axes": axes_said, "tables": [*tables.values()], "order": [order[id(table)] for table in query.tables]}
    return Said(words, arrays)


def counts_heard(said: Said, max_records: int) -> Counts:
    """Return the query that was asked; whether it fits the records, it says itself.

    Raises:
        Garbled: It is not in this form.
    """
    try:
        axes_said, tables, order = (said.words[key] for key in ("axes", "tables", "order"))
        axes = [axis_of(words, own(said.arrays, place)) for place, words in enumerate(axes_said)]
        made = [tuple(axes[_place(each, len(axes))] for each in table) for table in tables]
        cells = sum(math.prod(axis.size for axis in table) for table in made)
        if not 0 < len(order) <= _MOST_TABLES or not 0 < cells <= _MOST_CELLS:
            raise ValueError
        return Counts(tables=[made[_place(each, len(made))] for each in order], max_records=max_records)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise garbled("question") from None


def own(arrays: Mapping[str, npt.NDArray[Any]], of: object) -> Arrays:
    """Return the arrays that belong to one part of a message, by their own names."""
    before = f"{of}."
    return {name.removeprefix(before): array for name, array in arrays.items() if name.startswith(before)}


def named(arrays: Mapping[str, npt.NDArray[Any]], of: object) -> Arrays:
    """Return arrays as those of one part of a message."""
    return {f"{of}.{name}": array for name, array in arrays.items()}


def _place(number: object, size: int) -> int:
    if not 0 <= whole(number) < size:
        raise IndexError
    return whole(number)


# -- answers -----------------------------------------------------------------------------------------------------------


def answer_said(total: Any, lengths: npt.NDArray[Any] | None = None) -> Said:
    """Return what says an answer: an array, or counts by name; and what was measured beside."""
    if isinstance(total, Mapping):
        return Said({"names": list(total), "counts": [int(count) for count in total.values()]}, {})
    return Said({}, {"total": total} | ({} if lengths is None else {LENGTHS: lengths}))


def total_heard(said: Said) -> Any:
    """Return an answer as it came; whether it is a possible one, the core looks at.

    Raises:
        Garbled: It is not in this form.
    """
    if "total" in said.arrays:
        return said.arrays["total"]
    names, counts = said.words.get("names"), said.words.get("counts")
    if not isinstance(names, list) or not isinstance(counts, list) or len(names) != len(counts):
        raise garbled("answer")
    if len({*map(str, names)}) != len(names):
        raise garbled("answer")
    return dict(zip(names, counts, strict=True))


def garbled(what: str) -> Garbled:
    """Return the refusal of something that is not in this form."""
    return Garbled("is not in the form that is asked for", field=what, remedy="use the same doublure at both ends")


def heard_as(words: Mapping[str, Any], key: str, form: type, otherwise: Callable[[], InputError]) -> Any:
    """Return one word of a message, of the form that it must have."""
    found = words.get(key)
    if type(found) is not form:
        raise otherwise()
    return found
