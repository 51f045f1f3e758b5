"""Fits of two neighbours, of which the second is handed every noisy answer of the first.

Where nothing but noisy answers decides what a fit does, both fits ask the same, in the same order, and leave equal
files. What each was about to be noised is kept: how far a unit moves it is compared with what its noise was made for.
"""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

import doublure as db
from doublure.access import Access
from doublure.data.series import sources as series_sources
from doublure.data.tables import unit_bounds
from doublure.errors import DoublureError, Interrupted
from doublure.planning.machine import RecordPlacement
from doublure.private import codes
from doublure.private.accounting import Event
from doublure.private.mechanism import Mechanism
from doublure.private.queries.query import Answer
from doublure.run import fitting, record_sources

SEED = 3
ROUNDING = 1e-6
_ROOM: dict[str, Any] = {"dataset": "audit", "epsilon": 1e6, "delta": 0.5}
_OF_THE_SESSION = ("created", "ledger", "generator_sha256", "tables_sha256")  # of run.json; files are compared


@dataclass(frozen=True, kw_only=True)
class Release:
    """One answer of a fit.

    Attributes:
        access: What paid for it.
        answer: Before its noise.
        noisy: As it was given out.
        ran: The event that this was.
    """

    access: Access
    answer: Answer
    noisy: Any
    ran: Event


class AsksOtherwise(Exception):
    """A neighbour is asked something else, though it was answered alike: an exact answer has decided."""


@contextlib.contextmanager
def recording() -> Iterator[list[Release]]:
    """Keep what is released."""
    kept: list[Release] = []
    noised = Mechanism._noised

    def kept_too(mechanism: Mechanism, answer: Answer, access: Access) -> tuple[Any, Event]:
        noisy, ran = noised(mechanism, answer, access)
        kept.append(Release(access=access, answer=answer, noisy=copy.copy(noisy), ran=ran))
        return noisy, ran

    with patch.object(Mechanism, "_noised", kept_too):
        yield kept


@contextlib.contextmanager
def replaying(kept: Sequence[Release]) -> Iterator[list[Answer]]:
    """Release what was released before; keep what would have been noised."""
    exact: list[Answer] = []

    def handed(mechanism: Mechanism, answer: Answer, access: Access) -> tuple[Any, Event]:
        before = kept[len(exact)] if len(exact) < len(kept) else None
        if before is None or (before.access, _form(before.answer)) != (access, _form(answer)):
            raise AsksOtherwise(access.purpose)
        exact.append(answer)
        return copy.copy(before.noisy), before.ran

    with patch.object(Mechanism, "_noised", handed):
        yield exact


def _form(answer: Answer) -> tuple[Any, ...]:
    """Return all of an answer that may not be private."""
    shape = None if isinstance(answer.total, Mapping) else (answer.total.shape, answer.total.dtype)
    return shape, answer.sensitivity, answer.unit, answer.sample_rate, answer.sampling


def difference(one: Answer, other: Answer) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what two exact answers to one query differ by, flat."""
    if isinstance(one.total, Mapping):
        names = sorted(one.total.keys() | other.total.keys())
        return np.array([other.total.get(name, 0) - one.total.get(name, 0) for name in names], dtype=np.float64)
    exact = np.asarray(other.total, dtype=np.float64) - np.asarray(one.total, dtype=np.float64)
    return exact.ravel() * (1.0 if one.unit is None else one.unit)


# -- a fit -------------------------------------------------------------------------------------------------------------


def fit(data: Any, plan: db.Plan, folder: Path) -> dict[str, Any]:
    """Fit, and return what is visible of it: every file that is not internal, or what was refused in which words."""
    ledger = db.Ledger.create(folder / "ledger", **_ROOM)
    try:
        with _first_series_of_each_unit():
            db.fit(data, plan, ledger=ledger, out=folder / "run", seed=SEED, progress=False)
    except Interrupted:
        raise
    except DoublureError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    return visible(folder / "run") | {"the ledger": [record.kind for record in ledger.entries]}


def visible(run: Path) -> dict[str, Any]:
    """Return a run's files but for its internal ones, and for what is the session's in ``run.json``."""
    found: dict[str, Any] = {}
    for path in sorted(run.rglob("*")):
        name = path.relative_to(run).as_posix()
        if path.is_file() and not name.startswith("internal/"):
            found[name] = _tensors(path) if path.suffix == ".safetensors" else path.read_bytes()
    told = json.loads(found["run.json"])
    return found | {"run.json": {key: value for key, value in told.items() if key not in _OF_THE_SESSION}}


def _tensors(path: Path) -> tuple[Any, bytes]:
    """Return a safetensors file's header, whose keys are in no order, and the numbers."""
    content = path.read_bytes()
    begins = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:begins]), content[begins:]


@contextlib.contextmanager
def _first_series_of_each_unit() -> Iterator[None]:
    """Which series of a unit are used is drawn at random, in each world by itself: here it is the first ones."""

    def first(of: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
        return np.flatnonzero(pd.Series(of).groupby(of).cumcount() < most)

    with patch.object(series_sources, "at_most", first):
        yield


@contextlib.contextmanager
def in_parts_of(records: int | None) -> Iterator[None]:
    """Count a table in partitions of so many records; None: held."""
    if records is None:
        yield
        return
    with contextlib.ExitStack() as stack:
        placed = lambda *given, **named: RecordPlacement.IN_PARTITIONS  # noqa: E731
        stack.enter_context(patch.object(fitting, "choose_placement", placed))
        stack.enter_context(patch.object(record_sources, "RECORDS_AT_ONCE", records))
        stack.enter_context(patch.object(codes, "PARTITION_RECORDS", records + 1))
        stack.enter_context(patch.object(unit_bounds, "PART_RECORDS", records + 1))
        yield


# -- two fits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Two data sets of which one has a unit more, and what is fitted to both.

    Attributes:
        plan: Of both.
        without: One.
        there: The other.
        parts: How many records a partition has; None: they are held.
        about: What the unit is, in words.
    """

    plan: db.Plan
    without: Any
    there: Any
    parts: int | None
    about: str


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What two fits differ by.

    Attributes:
        releases: How many were compared.
        l1: The most that an exact answer moved, over what its noise was made for, in L1.
        l2: Likewise, in L2.
        fitted: Whether both fits went through.
        differing: What is visible and differs, by name.
    """

    releases: int
    l1: float
    l2: float
    fitted: bool
    differing: tuple[str, ...]

    @property
    def accused(self) -> bool:
        """Whether this is more than was priced."""
        return bool(self.differing) or max(self.l1, self.l2) > 1 + ROUNDING


def compared(pair: Neighbours) -> Compared:
    """Fit one neighbour, and the other one with its answers."""
    with tempfile.TemporaryDirectory() as folder, in_parts_of(pair.parts):
        root = Path(folder)
        for name in ("one", "other"):
            (root / name).mkdir()
        with recording() as kept:
            one = fit(pair.without, pair.plan, root / "one")
        with replaying(kept) as exact:
            try:
                other = fit(pair.there, pair.plan, root / "other")
            except AsksOtherwise as error:
                other = {"asks": str(error)}
    moved = [shares(before.answer, now) for before, now in zip(kept, exact, strict=False)]
    return Compared(
        releases=len(exact),
        l1=max((each[0] for each in moved), default=0.0),
        l2=max((each[1] for each in moved), default=0.0),
        fitted="refused" not in one and "refused" not in other,
        differing=tuple(sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))),
    )


def shares(one: Answer, other: Answer) -> tuple[float, float]:
    """Return how far an answer moves in L1 and in L2, over what it is priced for."""
    moved, priced = difference(one, other), one.sensitivity
    return float(np.abs(moved).sum()) / priced.l1, float(np.linalg.norm(moved)) / priced.l2
