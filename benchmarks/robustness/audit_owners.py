"""Owners who do not keep to the rules, and owners one of whose records does not: through the production federation.

An owner sends gradient sums of any length, alone or with a second one that takes them back. What is released may differ
from the exact sum of what was added and the noise that was drawn by rounding alone, which is far below C. Where noise
or the others' digits are lost it differs by more. Beside it neighbours of one record are compared as in
``audit_replay.py``, with a record that the schema does not admit or that cannot be read.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

import numpy as np
import pandas as pd
from audit_replay import AsksOtherwise, recording, replaying, shares, visible

import doublure as db
from doublure.errors import DoublureError
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.simulate import fit_remotely
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.owner_partitions import OwnerPartitions
from doublure.support.messages import Message

Change: TypeAlias = Callable[[int, Message, Message], Message]
OWNERS, UNITS = 3, 24
POWERS = (0, 4, 8, 16, 24, 31, 40, 64, 100)
ALLOWED = 2.0**-10
"""Of C: ten thousand times what float32 rounds off a sum of as many units as there are here."""
_SCHEMA = f"""
doublure: 1
kind: table
units: {UNITS}
federated: {{max_silos: 1}}
columns:
  a: {{type: real, bounds: [0, 1], missing: false}}
  c: {{type: category, values: [low, high], missing: false, roles: [target]}}
"""
_CRITIC: dict[str, Any] = {
    "steps": 2, "lot_size": 8, "width": 4, "critic_width": 4, "noise_width": 2, "generator_batch": 8, "checkpoints": 1,
}  # fmt: skip
_COUNTS: dict[str, Any] = {"components": 2, "fit_steps": 2, "starts": 1}
_ROOM: dict[str, Any] = {"epsilon": 1e6, "delta": 0.5}


class Hands:
    """A post that hands each owner what is said to it.

    Args:
        owners: By number.
        change: Makes of a question and an owner's answer what is heard of it.
    """

    def __init__(self, owners: Mapping[int, Silo], change: Change | None) -> None:
        self._owners = owners
        self._change = change

    def nodes(self) -> list[int]:
        """Return who there is."""
        return list(self._owners)

    def send(self, messages: Mapping[int, Message]) -> Iterator[tuple[int, Message]]:
        """Yield what each owner answers."""
        for node, said in messages.items():
            answer = self._owners[node].answer(said)
            yield node, answer if self._change is None else self._change(node, said, answer)


def federated(files: Mapping[int, Path], plan: db.Plan, folder: Path, change: Change | None = None) -> dict[str, Any]:
    """Fit with owners; return what is visible of it, or what was refused."""
    owners = {}
    for number, path in files.items():
        own = folder / f"at {number}"
        own.mkdir(parents=True)
        db.Ledger.create(own / "ledger", dataset=f"owner {number}", **_ROOM)
        owners[number] = Silo(name=f"owner {number}", data=str(path), plan=plan, ledger=own / "ledger", folder=own)
    ledger = db.Ledger.create(folder / "ledger", dataset="all", **_ROOM)
    clients = Clients(Hands(owners, change), plan, one_unit=False, said=lambda line: None)
    try:
        fit_remotely(clients, plan, ledger=ledger, out=folder / "run", seed=1)
    except DoublureError as error:
        return {"refused": type(error).__name__}
    return visible(folder / "run")


def _records() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    return pd.DataFrame({"a": draw.random(UNITS).round(3), "c": draw.choice(["low", "high"], UNITS)})


def _dealt(folder: Path, more: bytes = b"") -> dict[int, Path]:
    """Write each owner's file; the last one's has more."""
    folder.mkdir()
    found, frame = {}, _records()
    for number in range(1, OWNERS + 1):
        found[number] = folder / f"owner-{number}.csv"
        frame[number - 1 :: OWNERS].to_csv(found[number], index=False)
    with found[OWNERS].open("ab") as file:
        file.write(more)
    return found


# -- sums of any length ------------------------------------------------------------------------------------------------


def lengths(*, taken_back: bool) -> dict[str, Any]:
    """Send 2^k C more in each coordinate for all k, before the others, and let the last owner take it back, or not."""
    plan = db.plan(
        db.Schema.parse(_SCHEMA), method="dpgan", epsilon=4.0, delta=1e-4, accountant="rdp", **_CRITIC
    )  # fmt: skip
    bound = plan.settings.model_dump()["max_grad_norm"]
    errors = [_error(plan, 2.0**power * bound, taken_back=taken_back) / bound for power in POWERS]
    return _row(plan, max(errors), ALLOWED)


def _error(plan: db.Plan, length: float, *, taken_back: bool) -> float:
    """Return how far what is released lies from the exact sum and its noise, at most."""

    def change(node: int, said: Message, answer: Message) -> Message:
        sign = {1: 1.0, OWNERS: -1.0 if taken_back else 0.0}.get(node, 0.0)
        if said.words["ask"] != "step" or not sign or "total" not in answer.arrays:
            return answer
        total = answer.arrays["total"] + np.float32(sign * length)
        return Message(answer.words, {**answer.arrays, "total": total})

    with tempfile.TemporaryDirectory() as folder, recording() as kept, _watched() as (added, drawn):
        federated(_dealt(Path(folder) / "clients"), plan, Path(folder), change)
    worst = 0.0
    for release, totals, noise in zip(kept, added, drawn, strict=False):
        terms = zip(release.noisy, *(-total for total in totals), -noise, strict=True)
        worst = max(worst, math.hypot(*(math.fsum(map(float, each)) for each in terms)))  # float64 may lose them, too
    return worst


@contextlib.contextmanager
def _watched() -> Iterator[tuple[list[list[Any]], list[Any]]]:
    """Yield what is added, and the noise that is drawn, for each release."""
    added: list[list[Any]] = []
    drawn: list[Any] = []
    answers, normal = OwnerPartitions.answers, OsKeyedNoise.normal

    def adding(places: Any, query: Any, *, sample_rate: float) -> Iterator[Any]:
        added.append([])
        for answer in answers(places, query, sample_rate=sample_rate):
            added[-1].append(np.array(answer.total))
            yield answer

    def drawing(noise: OsKeyedNoise, size: int, std: float) -> ScaledNoise:
        found = normal(noise, size, std)
        drawn.append(np.array(found.values))
        return found

    with patch.object(OwnerPartitions, "answers", adding), patch.object(OsKeyedNoise, "normal", drawing):
        yield added, drawn


# -- records that do not fit -------------------------------------------------------------------------------------------


def misfit(line: bytes) -> Callable[[], dict[str, Any]]:
    """Return what compares owners with and without one line more."""

    def run() -> dict[str, Any]:
        plan = db.plan(
            db.Schema.parse(_SCHEMA), method="statistics", epsilon=8.0, delta=1e-4, accountant="rdp", **_COUNTS
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            with recording() as kept:
                one = federated(_dealt(root / "without"), plan, root / "one")
            with replaying(kept) as exact:
                try:
                    other = federated(_dealt(root / "there", line), plan, root / "other")
                except AsksOtherwise:
                    other = {"asks": "otherwise"}
        moved = max((max(shares(before.answer, now)) for before, now in zip(kept, exact, strict=False)), default=0.0)
        differs = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        return _row(plan, moved, 1.0 + 1e-6) | {"odd": differs, "accused": bool(differs) or moved > 1 + 1e-6}

    return run


def _row(plan: db.Plan, shown: float, allowed: float) -> dict[str, Any]:
    return {
        "epsilon": plan.epsilon, "delta": plan.delta, "shown": shown, "allowed": allowed, "accused": shown > allowed,
    }  # fmt: skip


ATTACKS: dict[str, Callable[[], dict[str, Any]]] = {
    "a sum of any length": lambda: lengths(taken_back=False),
    "a sum of any length, taken back": lambda: lengths(taken_back=True),
    "a value that is not listed": misfit(b"0.5,astronaut\n"),
    "a cell that is no number": misfit(b"x,low\n"),
    "a byte that is no UTF-8": misfit(b"0.5,l\xffw\n"),
    "a line that is cut short": misfit(b"0.5\n"),
}
