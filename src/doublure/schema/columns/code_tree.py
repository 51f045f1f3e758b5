"""The public groups above a code: chapters and blocks, by prefixes of the code or by a list of parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import override

from doublure.errors import SchemaError
from doublure.schema.columns.integer_domain import IntegerDomain
from doublure.schema.scalars import Value, label

if TYPE_CHECKING:
    import numpy as np

    Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class CodeTree:
    """The groups above codes, a pure function of each code's text.

    Attributes:
        lengths: By prefixes: the letters and digits of groups' names, ascending; separators do not count.
        parents: By a list: code or group -> the group above it.
        depth: How many levels there are.
    """

    lengths: tuple[int, ...] = ()
    parents: Mapping[str, str] = field(default_factory=dict)
    depth: int = 0

    @classmethod
    def of_prefixes(cls, lengths: Iterable[int]) -> CodeTree:
        """Return the tree of prefixes.

        Example:
            >>> CodeTree.of_prefixes([1, 3]).above("A00.1")
            ('A', 'A00')
            >>> CodeTree.of_prefixes([2, 3]).above("01.11")
            ('01', '01.1')
        """
        found = tuple(lengths)
        return cls(lengths=found, depth=len(found))

    @classmethod
    def of_parents(cls, parents: Mapping[str, str], codes: Iterable[str]) -> CodeTree:
        """Return the tree of a list of parents, as deep as its deepest code.

        Raises:
            ValueError: A code is above itself; ``message; remedy``.
        """
        depth = max((len(_chain(code, parents)) for code in codes), default=0)
        return cls(parents=parents, depth=depth)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The schema's names of the levels, the coarsest first: lengths of prefixes, or 1, 2 and so on."""
        return self.lengths or tuple(range(1, self.depth + 1))

    def ends_at(self, group: str, level: int) -> bool:
        """Return whether every longer text that begins with a group's name is in that group, by prefixes."""
        return sum(char.isalnum() for char in group) == self.lengths[level]

    def above(self, code: str) -> tuple[str, ...]:
        """Return the group of a code at each level, the coarsest first; below its last one the code itself."""
        if self.lengths:
            return tuple(_prefix(code, length) for length in self.lengths)
        chain = _chain(code, self.parents)[: self.depth]
        return (*chain, *[code] * (self.depth - len(chain)))


@dataclass(frozen=True, kw_only=True)
class CodeList:
    """A column's values and the groups above them, as its codes imply.

    Attributes:
        tree: The groups above any code.
        domain: The values: codes, then groups that stand for codes outside the list, then what stands for others.
        labels: The same as texts.
        above: Of each value its groups, the coarsest first.
        places: Text -> place.
    """

    tree: CodeTree
    domain: tuple[Value, ...]
    labels: tuple[str, ...]
    above: tuple[tuple[str, ...], ...]
    places: Mapping[str, int]

    @classmethod
    def of(
        cls,
        codes: tuple[Value, ...],
        lengths: tuple[int, ...] | None,
        parents: Mapping[str, str] | None,
        *,
        with_groups: bool,
        other: str | None,
    ) -> CodeList:
        """Return the list of some codes; the last few are kept, as columns ask for them often.

        Raises:
            ValueError: A group is above itself; ``message; remedy``.
        """
        return _found(_ByIdentity(codes), lengths, _ByIdentity(parents), with_groups, other)


class _ByIdentity:
    """A value that is told from others by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.value is self.value


@lru_cache(maxsize=16)
def _found(
    codes: _ByIdentity, lengths: tuple[int, ...] | None, parents: _ByIdentity, with_groups: bool, other: str | None
) -> CodeList:
    texts = [label(code) for code in codes.value]
    tree = CodeTree.of_parents(parents.value or {}, texts) if lengths is None else CodeTree.of_prefixes(lengths)
    domain = dict(zip(texts, codes.value, strict=True))
    if with_groups:
        for group in [group for text in texts for group in tree.above(text)]:
            domain.setdefault(group, group)
    if other is not None:
        domain.setdefault(label(other), other)
    return CodeList(
        tree=tree,
        domain=tuple(domain.values()),
        labels=tuple(domain),
        above=tuple(map(tree.above, domain)),
        places={text: place for place, text in enumerate(domain)},
    )


@dataclass(frozen=True, kw_only=True)
class CodeDomain(IntegerDomain):
    """The places of codes, with the groups above them.

    Attributes:
        groups: Of each level the group of each place, the coarsest level first.
        proxies: Places of groups' names, which stand for codes outside the list and are drawn as listed ones.
    """

    groups: tuple[tuple[int, ...], ...]
    proxies: tuple[int, ...] = ()

    @override
    def undrawn(self) -> tuple[int, ...]:
        return self.proxies

    @override
    def levels(self) -> Ints:
        import numpy as np

        return np.array(self.groups, dtype=np.int64)


def numbered(names: Iterable[str]) -> tuple[int, ...]:
    """Return the number of each name, in the order in which they first occur."""
    known: dict[str, int] = {}
    return tuple(known.setdefault(name, len(known)) for name in names)


def read_parents(rows: list[list[str]], place: str) -> dict[str, str]:
    """Return code or group -> the group above it, of a file's header and lines.

    Raises:
        SchemaError: It has other columns, or gives one code two parents.
    """
    header, *lines = rows
    remedy = "write a header code,parent and a line for each code and group that has one above it"
    if [cell.lower() for cell in header] != ["code", "parent"]:
        raise SchemaError("names a file with other columns than code and parent", field=place, remedy=remedy)
    found: dict[str, str] = {}
    for code, parent in lines:
        if parent and found.setdefault(code, parent) != parent:
            raise SchemaError("names a file that gives one code two parents", field=place, remedy="keep one")
    return found


def _prefix(code: str, length: int) -> str:
    """Return the begin of a code up to so many letters and digits; the whole of a shorter one."""
    seen = 0
    for place, char in enumerate(code, start=1):
        seen += char.isalnum()
        if seen == length:
            return code[:place]
    return code


def _chain(code: str, parents: Mapping[str, str]) -> list[str]:
    """Return the groups above a code, the coarsest first.

    Raises:
        ValueError: A group is above itself; ``message; remedy``.
    """
    found: list[str] = []
    while (code := parents.get(code, "")) != "":
        if len(found) > len(parents):
            raise ValueError("parents put a group above itself; fix the list")
        found.insert(0, code)
    return found
