"""Kill runs at random and ask whether any noisy step was drawn that the ledger had not authorised.

A child resumes a reservation, authorises a few steps, "draws" each by writing its number to a pipe, and so on. The
parent sends SIGKILL at a random moment, reads what was drawn, and compares it with the ledger on disk. The next child
resumes where the ledger says. Two things are counted: steps drawn beyond what is authorised, and steps drawn twice.

    python benchmarks/robustness/ledger_kill.py --kills 3000
    python benchmarks/robustness/ledger_kill.py --kills 20 --mutant     # draws before it authorises: must be caught
    python benchmarks/robustness/ledger_kill.py --ledger postgresql://owner@127.0.0.1/database/kill

No failure in N kills bounds the failure rate at 3 / N with 95 % confidence. SIGKILL keeps the page cache: that the
write is followed by an fsync before anything is drawn is shown by tests/ledger/test_faults.py, not here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from doublure.ledger import Ledger

STEPS = 100_000
CHUNK = 5
STEP_SECONDS = 0.0005


def plan() -> SimpleNamespace:
    """Return a small plan with many steps."""
    return SimpleNamespace(
        method="dpgan",
        guarantee=SimpleNamespace(kind="dp"),
        epsilon=0.001,
        delta=1e-9,
        unit={"name": "person", "id": None, "max_records": 1},
        relation="add/remove",
        accountant="pld",
        schema_sha256="0" * 64,
        sha256="0" * 64,
        touches=[],
        steps=STEPS,
    )


def child(path: str, run_id: str, session: str, next_session: str, drawn: int, *, mutant: bool) -> None:
    """Resume the run and draw until killed."""
    reservation = Ledger.open(path).resume(run_id, session, next_session=next_session)
    while reservation.authorised < reservation.steps:
        first, last = reservation.authorised + 1, min(reservation.authorised + CHUNK, reservation.steps)
        if not mutant:
            reservation.advance(last)
        for step in range(first, last + 1):
            time.sleep(STEP_SECONDS)
            os.write(drawn, b"%d\n" % step)
        if mutant:
            reservation.advance(last)


def kill_once(path: str, run_id: str, sessions: tuple[str, str], chance: random.Random, *, mutant: bool) -> list[int]:
    """Run one child, kill it while it resumes or draws, and return the steps it drew."""
    reading, writing = os.pipe()
    number = os.fork()
    if number == 0:
        try:
            child(path, run_id, *sessions, writing, mutant=mutant)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as drawn:
        first = drawn.readline() if chance.random() < 0.7 else b""
        time.sleep(chance.uniform(0, 0.03))
        os.kill(number, signal.SIGKILL)
        rest = drawn.read()
    os.waitpid(number, 0)
    # A number cut short by the kill would read as a smaller one; a whole line is one write.
    return [int(line) for line in (first + rest).decode().split("\n")[:-1]]


def measure(kills: int, *, mutant: bool, seed: int, place: str | None = None) -> dict[str, float]:
    """Kill that many children and count what the ledger did not know."""
    chance, started = random.Random(seed), time.monotonic()
    under, twice, drawn_steps, without = 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = place or str(Path(folder, "kill.ledger"))
        ledger = Ledger.create(path, dataset="kill", epsilon=1000.0, delta=1e-3)
        reservation, seen = ledger.reserve(plan()), set[int]()
        run_id, session = reservation.run_id, reservation.session
        for number in range(kills):
            following = f"session-{number}"
            drawn = kill_once(path, run_id, (session, following), chance, mutant=mutant)
            authorised = max((e.body["through_step"] for e in ledger.entries if e.kind == "advance"), default=0)
            under += bool(drawn) and max(drawn) > authorised
            twice += bool(seen.intersection(drawn))
            without += not drawn
            seen.update(drawn)
            drawn_steps += len(drawn)
            session = next((e.body["session"] for e in reversed(ledger.entries) if e.kind == "resume"), session)
        ledger.verify()
    return {
        "kills": kills,
        "steps_drawn": drawn_steps,
        "kills_before_the_first_step": without,
        "beyond_authorised": under,
        "drawn_twice": twice,
        "failure_rate_below_at_95": 3 / kills if not under + twice else 1.0,
        "seconds": round(time.monotonic() - started, 1),
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="when to kill; the runs draw no noise")
    parser.add_argument("--mutant", action="store_true", help="draw before authorising, to see that it is caught")
    parser.add_argument("--ledger", help="where to make it: a path or an address; a temporary file if left out")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    result = measure(arguments.kills, mutant=arguments.mutant, seed=arguments.seed, place=arguments.ledger)
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name.replace('_', ' '):32} {value}")


if __name__ == "__main__":
    main()
