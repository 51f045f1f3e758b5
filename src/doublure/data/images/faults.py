"""Images that break a public rule: counted in messages, named in an internal list only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from doublure.errors import Fault, FaultyRecords

UNREADABLE = "cannot be read as PNG, JPEG, WebP, BMP or TIFF, or are cut off"
HUGE = "have more than 50 million pixels"
MOVING = "have several frames"
SIZE = "have another size than the schema's shape"
SMALL = "have less than the schema's crop"
COLOURS = "have other colours than the schema's shape: grey, a palette, transparency or 16 bits"
DEPTH = "have 8 bits, and the schema's range has 16"
DEEP = "have numbers of 32 bits or colours of 16, of which nothing says which is black"
NOT_FINITE = "hold numbers that are not finite"
LABEL_MISFIT = "has a label that the schema does not list, or none"
_FIXED_BY_RESIZING = frozenset({MOVING, SIZE, COLOURS, DEPTH})


class Faults:
    """Images that break a public rule.

    Attributes:
        rows: Their indices, from 0.
    """

    def __init__(self) -> None:
        self._noted: list[tuple[int, str]] = []

    @property
    def rows(self) -> list[int]:
        """Return the places of the pictures that broke one, from 0."""
        return [number - 1 for number, _ in self._noted]

    def note(self, fault: str, number: int) -> None:
        """Remember a picture; ``number`` is its place, from 1."""
        self._noted.append((number, fault))

    def refuse(self, container: str, name_of: Callable[[int], str]) -> None:
        """Refuse the set if any picture broke a rule.

        Args:
            container: What the set is called.
            name_of: Returns the name of the file of the picture at a place, from 0; empty where it has none.

        Raises:
            FaultyRecords: Its message says how many broke which rule.
        """
        if not self._noted:
            return
        counts = Counter(fault for _, fault in self._noted)
        said = "; ".join(f"{count} {_of(count, fault)}" for fault, count in sorted(counts.items()))
        remedy = "fix or remove them" + (
            ", or declare on_mismatch: resize" if set(counts) <= _FIXED_BY_RESIZING else ""
        )
        first = min(number for number, _ in self._noted)
        raise FaultyRecords(
            f"of the images {said} (the first is number {first})",
            field=container,
            remedy=remedy,
            faults=[Fault(number, name_of(number - 1), fault) for number, fault in sorted(self._noted)],
        )


def _of(count: int, fault: str) -> str:
    """Return a fault of so many pictures."""
    if count > 1:
        return fault
    return fault.replace("have ", "has ", 1).replace("hold ", "holds ", 1).replace("or are cut", "or is cut")
