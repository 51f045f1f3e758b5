from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import postgres as postgres_server
import pytest

from doublure.ledger import Ledger


class Touch:
    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def to_json(self) -> dict[str, Any]:
        return self.fields


def a_plan(kind: str = "dp", epsilon: float | None = 0.5, delta: float | None = 1e-6, **other: Any) -> SimpleNamespace:
    if kind in ("empirical", "none"):
        epsilon = delta = None
    event = {"type": "gaussian", "noise_multiplier": 1.1, "sample_rate": 0.01}
    fields: dict[str, Any] = {
        "method": "dpgan",
        "guarantee": SimpleNamespace(kind=kind),
        "epsilon": epsilon,
        "delta": delta,
        "worst_case": (epsilon, delta) if kind == "bayesian-dp" else None,
        "sha256": "ef" * 32,
        "unit": {"name": "person", "id": None, "max_records": 1},
        "relation": "add/remove",
        "accountant": None if epsilon is None else "pld",
        "schema_sha256": "ab" * 32,
        "touches": [Touch(purpose="train", event=event, epsilon=epsilon, delta=delta)],
        "steps": 100,
    }
    return SimpleNamespace(**(fields | other))


@pytest.fixture
def make_plan() -> Callable[..., SimpleNamespace]:
    return a_plan


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "adult.ledger"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.create(path, dataset="adult", epsilon=3.0, delta=1e-4)


@pytest.fixture(scope="session")
def server() -> Iterator[postgres_server.Server]:
    """A PostgreSQL server that keeps what it confirms, with its password in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(postgres_server._SETTINGS, "fsync", "on")
        for found in postgres_server.session():
            patch.setenv("PGPASSWORD", found.password)
            yield found


_NUMBERS = itertools.count()


@pytest.fixture
def url(server: postgres_server.Server) -> str:
    """The address of a ledger that is not made yet."""
    return server.url(rest=f"/ledger{next(_NUMBERS)}")


@pytest.fixture(params=["file", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The place of a ledger that is not made yet: a path, or an address."""
    return str(tmp_path / "adult.ledger") if request.param == "file" else request.getfixturevalue("url")
