"""Kill fits at random, go on, kill again: the ledger never knows of less than was drawn, and runs come to their end.

The apparatus is that of ``tests/end_to_end/test_kill.py``, which kills once at every turning point; here the moment
comes from the clock, over and over. A case is a run with a ledger of its own: fitted, killed, resumed, killed, at most
four times, and then brought to its end. After every kill the ledger is held against what the child wrote down before it
drew.

    python benchmarks/robustness/fit_kill.py --kills 3000      # resumable; about a second a kill
    python benchmarks/robustness/fit_kill.py --table

No failure in N kills bounds the failure rate at 3/N with 95 % confidence.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from killing import Kept, borrowed, main

import doublure as db

KEPT = Kept("fit_kill")
SESSIONS = 4


def world() -> tuple[ModuleType, Any, db.Plan]:
    """Return the apparatus, the small world of the tests, and a plan that buys facts and trains."""
    kill, small = borrowed("end_to_end/test_kill.py"), borrowed("conftest.py")
    plan = db.plan(
        db.Schema.parse(small.BOUGHT), method="dpgan", epsilon=small.EPSILON, delta=small.DELTA, accountant="rdp",
        **small.TINY,
    )  # fmt: skip
    return kill, SimpleNamespace(book=small.Small.book, csv=small.Small.csv), plan


def one(kill: ModuleType, case: Any, chance: random.Random, length: float) -> dict[str, Any]:
    """Kill one run at most four times, and bring it to its end; return how often, and what was wrong."""
    kills, fault = 0, None
    try:
        for session in range(SESSIONS):
            code = case.fit(after=chance.uniform(0, 1.2 * length), resume=session > 0)
            kills += code != 0
            case.hold_the_ledger_to_the_truth(session)
            if code == 0 or case.why_not() is not None:
                break
        if case.why_not() == "is finished":
            case.hold_to_its_end("finished")
        else:
            case.resume("at last")
    except AssertionError as error:
        fault = str(error)[:300] or "an assertion"
    return {"kills": kills, "drawn": len(case.notes("draw")), "fault": fault}


def measure(kills: int, first: int) -> None:
    """Kill until so many kills are kept."""
    kill, small, plan = world()
    with tempfile.TemporaryDirectory() as folder:
        nursery = kill.Nursery(Path(folder))
        whole = kill.Case(nursery, small, plan, Path(folder) / "whole")
        began = time.monotonic()
        whole.fit()
        length = time.monotonic() - began

        def make(number: int) -> dict[str, Any]:
            case = kill.Case(nursery, small, plan, Path(folder) / str(number))
            row = one(kill, case, random.Random(number), length)
            shutil.rmtree(case.folder)
            return row

        KEPT.until(kills, make, first=first)
        nursery.close()


if __name__ == "__main__":
    main(__doc__, KEPT, measure, lambda rows: f"{sum(row['drawn'] for row in rows)} draws")
