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

import argparse
import importlib.util
import json
import random
import shutil
import tempfile
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import doublure as db

OUT = Path(__file__).resolve().parents[1] / "out" / "fit_kill.jsonl"
TESTS = Path(__file__).resolve().parents[2] / "tests"
SESSIONS = 4


def borrowed(name: str) -> ModuleType:
    """Return a module of the tests: what they kill with, and whom."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, TESTS / name)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    """Kill until so many kills are kept in the file."""
    OUT.parent.mkdir(exist_ok=True)
    kill, small, plan = world()
    with tempfile.TemporaryDirectory() as folder:
        nursery = kill.Nursery(Path(folder))
        whole = kill.Case(nursery, small, plan, Path(folder) / "whole")
        began = time.monotonic()
        whole.fit()
        length = time.monotonic() - began
        number = max([first, *(row["case"] + 1 for row in finished())])
        while sum(row["kills"] for row in finished()) < kills:
            case = kill.Case(nursery, small, plan, Path(folder) / str(number))
            row = {"case": number, **one(kill, case, random.Random(number), length)}
            with OUT.open("a") as file:
                file.write(json.dumps(row) + "\n")
            shutil.rmtree(case.folder)
            number += 1
        nursery.close()


def finished() -> list[dict[str, Any]]:
    """Return the cases made so far."""
    return [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.is_file() else []


def table() -> None:
    """Print what was found."""
    rows = finished()
    kills, faults = sum(row["kills"] for row in rows), [row for row in rows if row["fault"]]
    rate = f"below {3 / kills:.2g}" if kills and not faults else "not bounded"
    print(f"{len(rows)} runs, {kills} kills, {sum(row['drawn'] for row in rows)} draws, {len(faults)} faults: {rate}")
    for row in faults:
        print(row["case"], row["fault"])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case: when to kill; the runs' noise is fresh")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    if not arguments.table:
        measure(arguments.kills, arguments.seed)
    table()


if __name__ == "__main__":
    main()
