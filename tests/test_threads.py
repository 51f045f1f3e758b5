"""A fit without torch computes with one BLAS thread, unless it is told otherwise; afterwards all is as it was."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
import scipy.linalg  # noqa: F401 - has a BLAS of its own, and none may come later, with a number of its own
from threadpoolctl import threadpool_info, threadpool_limits

import doublure as db
from doublure.support import progress
from doublure.support.devices import threads_of_fit

SCHEMA = """
doublure: 1
kind: table
units: 200
columns:
  age: {type: integer, bounds: [18, 90], missing: false}
  income: {type: category, values: [low, high], missing: false, roles: [target]}
"""


def blas() -> set[int]:
    """Return the numbers of threads of the libraries that compute products."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {int(pool["num_threads"]) for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin with another number than any that is asked for, and leave no limit behind."""
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    torch = sys.modules.get("torch")
    taken = torch.get_num_threads() if torch else 0
    with threadpool_limits(3):
        yield
    if torch:
        torch.set_num_threads(taken)


class Watching(progress.SilentProgress):
    """Notes how many threads there are at each stage."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def stage(self, name: str, total: int | None = None) -> None:
        del name, total
        self.threads |= blas()

    def at(self, done: int) -> None:
        del done
        self.threads |= blas()


@pytest.mark.parametrize(("threads", "found", "left"), [(None, 1, 3), (2, 2, 2)])
def test_a_table_is_fitted_with_one_thread_or_as_many_as_it_was_told(tmp_path, threads, found, left):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 91, 200), "income": rng.choice(["low", "high"], 200)})
    made = db.plan(db.Schema.parse(SCHEMA), method="statistics", epsilon=2.0, delta=1e-5)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="x", epsilon=9.0, delta=1e-3)
    watching = Watching()
    db.fit(rows, made, ledger=ledger, threads=threads, seed=1, progress=watching)
    assert watching.threads == {found}
    assert blas() == {left}


def test_what_torch_computes_is_left_as_it_is():
    with threads_of_fit(None, with_torch=True):
        assert blas() == {3}


def test_a_fit_that_fails_leaves_no_limit():
    with contextlib.suppress(KeyError), threads_of_fit(None, with_torch=False):
        assert blas() == {1}
        raise KeyError
    assert blas() == {3}
