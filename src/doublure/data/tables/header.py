"""The names of a table's columns: renamed as the schema says; a column without one is not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from doublure.errors import DataError, counted, printable
from doublure.schema.scalars import label
from doublure.support.views import shorten

if TYPE_CHECKING:
    from doublure.schema.written import Written

RENAME = "give each a name of its own in the schema, such as rename: {total: [total, total_2]}"


def header_names(stored: Iterable[object], container: str, written: Written | None = None) -> list[str]:
    """Return the names of a header's columns in their order, empty where one has none.

    Args:
        stored: As the container has them.
        container: Its name.
        written: Renames columns, each that has a name by its place among them.

    Raises:
        DataError: No column has a name, or a column that is renamed does not stand so many times in the header.
    """
    names = ["" if each is None else label(each) for each in stored]
    if not any(names):
        remedy = "begin with a line of column names; lines before it are passed over by skip_rows"
        raise DataError("has no column name", field=container, remedy=remedy)
    return names if written is None or not written.rename else list(_renamed(names, written.rename))


def _renamed(names: Sequence[str], rename: Mapping[str, Sequence[str]]) -> Iterator[str]:
    counts = Counter(names)
    for name, new in rename.items():
        if counts[name] != len(new):
            times = "once" if counts[name] == 1 else f"{counts[name]} times"
            found = f"stands {times} in the header" if counts[name] else "is not a column of the data"
            remedy = "give a name for each column that is called so, from left to right"
            raise DataError(
                f"{found}, and has {counted(len(new), 'new name')}",
                field=f"rename.{printable(name) or repr(name)}",
                remedy=remedy,
            )
    left = {name: iter(new) for name, new in rename.items()}
    for name in names:
        yield next(left[name]) if name in left else name


def column_letters(number: int) -> str:
    """Return what a spreadsheet calls a column, by its number from 1.

    Example:
        >>> column_letters(1), column_letters(28)
        ('A', 'AB')
    """
    before, own = divmod(number - 1, 26)
    return (column_letters(before) if before else "") + chr(ord("A") + own)


def without_name(places: Sequence[int]) -> str:
    """Return in words which columns of a header have no name, by their places from 0.

    Example:
        >>> without_name([2, 27])
        '2 columns (C, AB) have no name'
    """
    has = "has" if len(places) == 1 else "have"
    return f"{counted(len(places), 'column')} ({shorten([column_letters(each + 1) for each in places])}) {has} no name"


def named_anew(places: Sequence[int], taken: Collection[str]) -> list[str]:
    """Return names for columns without one: by their letters, none twice."""
    found = list[str]()
    for place in places:
        name = f"column_{column_letters(place + 1)}"
        while name in taken or name in found:
            name += "_"
        found.append(name)
    return found


def numbered(names: Sequence[str]) -> dict[str, list[str]]:
    """Return new names for those that stand more than once: the first keeps its own, others are numbered.

    Example:
        >>> numbered(["day", "total", "total"])
        {'total': ['total', 'total_2']}
    """
    counts, taken = Counter(filter(None, names)), set(names)
    found: dict[str, list[str]] = {}
    for name, count in counts.items():
        if count > 1:
            found[name] = [name]
            number = 2
            while len(found[name]) < count:
                if (new := f"{name}_{number}") not in taken:
                    found[name].append(new)
                    taken.add(new)
                number += 1
    return found
