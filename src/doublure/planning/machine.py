"""Memory and time that a run needs, compared with this machine."""

from __future__ import annotations

import enum
import functools
import math
import os
import re
import time
from pathlib import Path

from doublure.errors import SettingError, printable
from doublure.methods.method import Method
from doublure.schema import Schema
from doublure.training.settings import MethodSettings, Work

LIBRARIES_BYTES = 350_000_000
_TORCH_BYTES = 350_000_000
PARTITION_BYTES = 400_000_000
"""Memory for records that are read in partitions: batches as they are read, encoded and counted."""
_DRAWN_BYTES = 300_000_000
"""Memory for records on disk: batches as they are read, and the pages that lots are drawn from."""
_UNIT_BYTES = 32
"""Memory for each of those records: its unit, and where the unit's records begin."""
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]*)?)\s*((?:[kmgt]i?)?b?)", re.IGNORECASE | re.ASCII)
_UNITS = {
    prefix + more + end: float(base**power)
    for power, prefix in enumerate(["", "K", "M", "G", "T"])
    for more, base in (("", 1000), ("I", 1024))
    for end in ("", "B")
}
_MANY_VALUES = 1_000
_IN_DATABASE = "keep the tables in a database, where they are counted"
_SECONDS_A_FIT = 1.0
_SECONDS_A_STEP = 0.008
_SIDE = 96
_REACHED = 0.25
_CONTAINER = Path("/sys/fs/cgroup/memory.max")


class RecordPlacement(enum.Enum):
    """The place of a run's records while it trains."""

    HELD = enum.auto()
    """In memory."""
    IN_PARTITIONS = enum.auto()
    """In memory a part at a time, as they are counted; or in another process that is asked."""
    ON_DISK = enum.auto()
    """On disk, from which the records of each lot are read."""


def needed_bytes(chosen: Method, schema: Schema, settings: MethodSettings, work: Work) -> int:
    """Return an estimate of a run's peak, libraries included."""
    torch = _TORCH_BYTES if chosen.needs_torch(schema, settings) else 0
    return LIBRARIES_BYTES + torch + work.memory_bytes


def memory_bytes() -> int | None:
    """Return this machine's memory, or the part of it that its container may use; None where it is unknown."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows
        return None
    try:
        return min(whole, int(_CONTAINER.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        return whole


def choose_placement(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    memory: int | None = None,
    *,
    elsewhere: bool = False,
    database: bool = False,
) -> RecordPlacement:
    """Return the place for records: memory, if no limit is given and they fit, or if the method allows nothing else.

    Args:
        chosen: The method.
        schema: The public facts.
        settings: With defaults resolved.
        memory: What the run may hold, in bytes; None: what there is.
        elsewhere: Whether records stay where they are, and are never held here.
        database: Whether a database counts them.
    """
    work = chosen.work(schema, settings)
    needed, there = needed_bytes(chosen, schema, settings, work), memory_bytes() if memory is None else memory
    return _placement(work, needed, there, given=memory is not None, elsewhere=elsewhere, database=database)


def _placement(
    work: Work, needed: int, there: int | None, *, given: bool, elsewhere: bool, database: bool
) -> RecordPlacement:
    scarce = there is not None and (given or needed > there)
    if (work.counted_bytes if database else work.records_bytes) and (elsewhere or scarce):
        return RecordPlacement.IN_PARTITIONS
    if work.drawn_bytes and scarce and not elsewhere:
        return RecordPlacement.ON_DISK
    return RecordPlacement.HELD


def refuse_too_large(
    chosen: Method,
    schema: Schema,
    settings: MethodSettings,
    memory: int | None = None,
    *,
    elsewhere: bool = False,
    database: bool = False,
) -> None:
    """Refuse a run that this machine, or the memory that it is given, could not hold, wherever records lie.

    It would be killed after its budget was charged.

    Args:
        chosen: The method.
        schema: The public facts.
        settings: With defaults resolved.
        memory: What the run may hold, in bytes; None: what there is.
        elsewhere: Whether records stay where they are, and are never held here.
        database: Whether a database counts them.

    Raises:
        SettingError: Naming the column that makes the networks wide, or the lot, and what to do.
    """
    work = chosen.work(schema, settings)
    needed, there = needed_bytes(chosen, schema, settings, work), memory_bytes() if memory is None else memory
    placement = _placement(work, needed, there, given=memory is not None, elsewhere=elsewhere, database=database)
    if placement is RecordPlacement.IN_PARTITIONS:
        needed += PARTITION_BYTES - work.counted_bytes
    elif placement is RecordPlacement.ON_DISK:
        needed += _DRAWN_BYTES + _UNIT_BYTES * schema.public_units * schema.unit.max_records - work.drawn_bytes
    if there is None or needed <= there:
        return
    if memory is not None:
        message = f"a run with {chosen.name} would need about {needed / 1e9:.3g} GB, and may have {memory / 1e9:.3g} GB"
        remedy = "give more"
        if placement is RecordPlacement.HELD and work.counted_bytes:
            remedy += f", or {_IN_DATABASE}"
        elif placement is RecordPlacement.HELD and schema.only_columns:
            remedy += ", or plan with statistics, which reads tables in parts"
        raise SettingError(message, field="memory", remedy=remedy)
    sizes = {name: len(column.domain) for name, column in getattr(schema, "columns", {}).items()}
    widest = max(sizes, key=lambda name: sizes[name], default=None)
    message = f"a run would need about {needed / 1e9:.3g} GB, and this machine has {there / 1e9:.3g} GB"
    if placement is RecordPlacement.HELD and work.counted_bytes:
        raise SettingError(message, field="memory", remedy=f"{_IN_DATABASE}, or fit on a larger machine")
    if widest is None or sizes[widest] < _MANY_VALUES:
        remedy = "choose a smaller lot_size or smaller networks, or plan on a larger machine"
        raise SettingError(message, field="memory", remedy=remedy)
    raise SettingError(
        f"it has {sizes[widest]} values: {message}",
        field=f"columns.{printable(widest)}",
        remedy="group rare values under other, choose a smaller lot_size, or plan on a larger machine",
    )


def parse_bytes(memory: int | str | None) -> int | None:
    """Return an amount of memory in bytes.

    Args:
        memory: Such as ``2GB``, ``500 MB`` or ``1.5GiB``; or bytes.

    Raises:
        SettingError: It is none.

    Example:
        >>> parse_bytes("2GB"), parse_bytes("1GiB")
        (2000000000, 1073741824)
    """
    if memory is None:
        return None
    found = _AMOUNT.fullmatch(str(memory).strip())
    size = round(float(found[1]) * _UNITS[found[2].upper()]) if found else 0
    if size <= 0 or isinstance(memory, bool):
        raise SettingError("is no amount of memory", field="memory", remedy="give one such as 2GB")
    return size


def estimate_seconds(work: Work) -> float:
    """Return an estimate of the seconds that a fit takes one core; ``benchmarks/forecast.py`` checks it."""
    steps = work.steps + work.free_steps
    return round(_SECONDS_A_FIT + work.flops / _flops_a_second() + steps * _SECONDS_A_STEP, 1)


@functools.cache
def _flops_a_second() -> float:
    """Measure once how fast one core multiplies matrices, in a few milliseconds; networks reach about a quarter of it.

    The matrices are too small for a BLAS to use several threads, and the clock is this thread's own. Otherwise the load
    of the machine would decide: threads that wait for one another on a busy one take hundreds of times as long.
    """
    import numpy as np

    matrix = np.ones((_SIDE, _SIDE), dtype=np.float32)
    best, products = math.inf, 20
    for _ in range(20):
        start = time.thread_time()
        for _ in range(products):
            matrix @ matrix
        best = min(best, time.thread_time() - start)
    return _REACHED * products * 2 * _SIDE**3 / max(best, 1e-6)
