"""What a run would hold in memory, against what this machine has."""

from __future__ import annotations

import os
from pathlib import Path

from doublure.errors import SettingError, printable
from doublure.methods.base import Method, MethodSettings
from doublure.schema import Schema

LIBRARIES_BYTES = 700_000_000
_MANY_VALUES = 1_000
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


def needed_bytes(chosen: Method, schema: Schema, settings: MethodSettings) -> int:
    """Return an estimate of a run's peak, libraries included."""
    return LIBRARIES_BYTES + chosen.work(schema, settings).memory_bytes


def memory_bytes() -> int | None:
    """Return this machine's memory, or the part of it that its container may use; None where nobody says."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None
    try:
        return min(whole, int(_CONTAINER.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return whole


def refuse_too_large(chosen: Method, schema: Schema, settings: MethodSettings) -> None:
    """Refuse a run that this machine could not hold: it would be killed after its budget was charged.

    Raises:
        SettingError: Naming the column that makes the networks wide, or the lot, and what to do.
    """
    needed, there = needed_bytes(chosen, schema, settings), memory_bytes()
    if there is None or needed <= there:
        return
    sizes = {name: len(getattr(column, "domain", ())) for name, column in getattr(schema, "columns", {}).items()}
    widest = max(sizes, key=lambda name: sizes[name], default=None)
    message = f"a run would need about {needed / 1e9:.3g} GB, and this machine has {there / 1e9:.3g} GB"
    if widest is None or sizes[widest] < _MANY_VALUES:
        remedy = "choose a smaller lot_size or smaller networks, or plan on a larger machine"
        raise SettingError(message, field="memory", remedy=remedy)
    raise SettingError(
        f"it has {sizes[widest]} values: {message}",
        field=f"columns.{printable(widest)}",
        remedy="group rare values under other, choose a smaller lot_size, or plan on a larger machine",
    )
