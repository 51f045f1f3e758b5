"""Many processes race for one budget: what they win together never passes the cap, and the chain stays whole.

    python benchmarks/robustness/race.py --processes 64 --tries 1000
    python benchmarks/robustness/race.py --processes 8 --tries 20 --mutant    # no lock: must be caught

Each process opens the ledger itself and tries to reserve again and again. The cap has room for a part of the tries; all
of that part must be won, by whomever, and not one more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from doublure.errors import BudgetRefused, LedgerError
from doublure.ledger import Ledger

EPSILON = 0.25
FITTING = 0.5


def plan() -> SimpleNamespace:
    """Return a small plan."""
    return SimpleNamespace(
        method="dpgan", guarantee=SimpleNamespace(kind="dp"), epsilon=EPSILON, delta=1e-9, unit={},
        relation="add/remove", accountant="pld", schema_sha256="0" * 64, sha256="0" * 64, touches=[], steps=1,
    )  # fmt: skip


def child(path: str, tries: int, *, mutant: bool) -> None:
    """Try so many times, once the parent says go; print how often it was won."""
    ledger, won = Ledger.open(path), 0
    sys.stdin.readline()
    unlocked = patch("fcntl.flock", lambda *_: None) if mutant else contextlib.nullcontext()
    with unlocked:
        for _ in range(tries):
            with contextlib.suppress(BudgetRefused):
                ledger.reserve(plan())
                won += 1
    print(won)


def measure(processes: int, tries: int, *, mutant: bool = False) -> dict[str, float | int | str]:
    """Let them race, and compare what was won with what the cap has room for."""
    room = int(FITTING * processes * tries)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "race.ledger"
        Ledger.create(path, dataset="race", epsilon=EPSILON * room, delta=0.5)
        command = [sys.executable, __file__, "--child", str(path), str(tries), *(["--mutant"] if mutant else [])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        racers = [subprocess.Popen(command, **pipes) for _ in range(processes)]
        for racer in racers:
            if racer.stdin is not None:
                racer.stdin.write("go\n")
                racer.stdin.flush()
        said = [racer.communicate()[0].strip() for racer in racers]
        won, fallen = sum(int(text or 0) for text in said), sum(racer.returncode != 0 for racer in racers)
        try:
            ledger = Ledger.open(path)
            whole, spent = str(ledger.verify().runs), ledger.spent.epsilon
        except LedgerError as error:
            whole, spent = f"damaged: {error.message}", float("nan")
    return {
        "processes": processes, "tries": processes * tries, "room": room, "won": won, "recorded": whole,
        "spent": spent, "cap": EPSILON * room, "fallen": fallen, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def held(result: dict[str, float | int | str]) -> bool:
    """Whether all that fits was won, nothing more, and the ledger knows it."""
    return (
        result["won"] == result["room"] == int(str(result["recorded"]).partition(":")[0] or -1) and not result["fallen"]
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--tries", type=int, default=1000)
    parser.add_argument("--mutant", action="store_true", help="without a lock, to see that it is caught")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], int(arguments.child[1]), mutant=arguments.mutant)
        return
    result = measure(arguments.processes, arguments.tries, mutant=arguments.mutant)
    print(json.dumps(result) if arguments.json else "\n".join(f"{key:12} {value}" for key, value in result.items()))


if __name__ == "__main__":
    main()
