"""Lists of codes with chapters above them, known by public names and declared values alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from doublure.schema.columns import Column, label
from doublure.schema.columns.code_tree import CodeTree

_NAMED = {
    re.compile(name, re.IGNORECASE): levels
    for name, levels in {
        r"(?:^|[_ .-])icd(?:[_ .-]?(?:9|10|11))?(?:[_ .-]?(?:cm|gm|code))?$": (1, 3),
        r"(?:^|[_ .-])atc(?:[_ .-]?code)?$": (1, 3, 4, 5),
        r"(?:^|[_ .-])nace(?:[_ .-]?(?:code|rev2?))?$": (2, 3),
        r"(?:^|[_ .-])isco(?:[_ .-]?(?:88|08))?(?:[_ .-]?code)?$": (1, 2, 3),
        r"(?:^|[_ .-])nuts(?:[_ .-]?3)?(?:[_ .-]?code)?$": (2, 3, 4),
        r"(?:^|[_ .-])(?:zip|plz|postcode|postal[_ .-]?code|zip[_ .-]?code)$": (1, 3),
    }.items()
}
"""Names of columns -> the levels of the lists that they are called after."""
FEWEST = 100
"""Values from which on a list is long."""
_SHARED, _GROUPS = 3, 2
"""Fewest values of a group on average, and fewest groups, for a level to say something."""
_CODE = re.compile(r"[A-Za-z]{0,4}[0-9][A-Za-z0-9]*(?:[ ./-][A-Za-z0-9]+)*", re.ASCII)


def levels_named(name: str) -> tuple[int, ...] | None:
    """Return the levels of the public list that a column is named after; None for another name.

    Example:
        >>> levels_named("icd10"), levels_named("age")
        ((1, 3), None)
    """
    return next((levels for pattern, levels in _NAMED.items() if pattern.search(name)), None)


def is_code(text: str) -> bool:
    """Return whether a text has the form of a code, with a digit in it, and no more than a few letters before that."""
    return _CODE.fullmatch(text) is not None


def likely_levels(name: str, values: Sequence[object]) -> tuple[int, ...] | None:
    """Return the prefixes by which declared values fall into groups; None where they do not look like codes.

    Args:
        name: The column's name.
        values: Its declared values. Public.
    """
    return _likely_levels(name, tuple(map(label, values)))


@lru_cache(maxsize=64)
def _likely_levels(name: str, texts: tuple[str, ...]) -> tuple[int, ...] | None:
    if len(texts) < FEWEST or not all(map(_CODE.fullmatch, texts)):
        return None
    return _grouping(texts, levels_named(name), _SHARED)


def default_levels(name: str, values: Sequence[object] = ()) -> tuple[int, ...] | None:
    """Return the levels that a column of codes has by default; None where nothing is in groups.

    They are those of the public list that it is named after, else the prefixes by which its values fall into groups.

    Args:
        name: The column's name.
        values: Its declared values. Public.

    Example:
        >>> default_levels("ZIP"), default_levels("region", ["DE11", "DE12", "FR10"]), default_levels("region")
        ((1, 3), (1,), None)
    """
    return levels_named(name) or _grouping(tuple(map(label, values)), None, 1)


def _grouping(texts: Sequence[str], lengths: Sequence[int] | None, shared: int) -> tuple[int, ...] | None:
    """Return the coarsest and the finest prefixes by which texts fall into groups; None where none do.

    Args:
        texts: The codes.
        lengths: Prefixes to try; None: all.
        shared: The fewest codes of a group on average.
    """
    longest = max((sum(char.isalnum() for char in text) for text in texts), default=0)
    found: list[tuple[int, int]] = []
    for length in lengths or range(1, longest):
        groups = len({CodeTree.of_prefixes([length]).above(text) for text in texts})
        most = len(texts) - 1 if shared == 1 else len(texts) // shared
        if max([_GROUPS - 1, *(number for _, number in found)]) < groups <= most:
            found.append((length, groups))
    levels = [length for length, _ in found]
    return tuple(dict.fromkeys((levels[0], levels[-1]))) if levels else None


def unlevelled(columns: Mapping[str, Column]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield columns of a long declared list that looks like codes, and the levels that they may have."""
    for name, column in columns.items():
        if column.listed and not (column.ordered or column.level_numbers):
            levels = likely_levels(name, column.domain)
            if levels is not None:
                yield name, levels


def begun_by(columns: Mapping[str, Column]) -> list[tuple[str, str]]:
    """Return pairs of columns of which each declared value of the first begins with one of the second, as C3 with C.

    A code is one word: "No, not at all" is an answer that begins with "No", and follows from no other question.
    """
    lists = {name: list(map(str, column.domain)) for name, column in columns.items() if column.listed}
    lists = {name: values for name, values in lists.items() if not any(" " in value for value in values)}
    return [
        (fine, coarse)
        for fine, values in lists.items()
        for coarse, groups in lists.items()
        if 2 <= len(groups) < len(values) and _begin(values, groups)
    ]


def _begin(values: Sequence[str], groups: Sequence[str]) -> bool:
    """Return whether each value begins with one of the groups alone and is longer, and each group begins one."""
    begun = [[group for group in groups if value.startswith(group) and value != group] for value in values]
    return all(len(own) == 1 for own in begun) and len({own[0] for own in begun}) == len(groups)
