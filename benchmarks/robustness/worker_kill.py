"""Kill Dask's workers at random while a table is fitted: the release stays that of all records in one place.

Each case is a fit of its own by two workers that this machine starts, with a ledger of its own and noise that is the
same for every fit. At moments from the clock one of the workers, whichever, is killed with -9; a new one takes its
place, is killed, and so on until the fit ends. Then release, sample and what ran are held against those of one process
that nobody kills, and the ledger against the plan. The schema has facts to learn and units of several records, so that
workers read, learn, shuffle units and count.

    python benchmarks/robustness/worker_kill.py --kills 100      # resumable; needs the extra ``dask``
    python benchmarks/robustness/worker_kill.py --table

No failure in N kills bounds the failure rate at 3/N with 95 % confidence.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from killing import Fault, Kept, Row, borrowed, hold, main

from doublure.errors import DoublureError
from doublure.ledger import Ledger
from doublure.run.engines import start_local_cluster

KEPT = Kept("worker_kill")
BETWEEN = 0.3, 2.0
"""Seconds from when both workers are there to the next kill."""
BACK = 120
"""Seconds within which a new worker is there."""


@contextlib.contextmanager
def killed(workers: Any, chance: random.Random, kills: list[int]) -> Iterator[None]:
    """Kill workers at random meanwhile; ``kills`` takes who it was."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(chance.uniform(*BETWEEN)):
            with contextlib.suppress(OSError, ValueError, TimeoutError):  # none is there, or it went by itself
                known = sorted(workers._client.run(os.getpid, on_error="ignore").values())
                victim = known[chance.randrange(len(known))]
                os.kill(victim, signal.SIGKILL)
                kills.append(victim)
                workers._client.wait_for_workers(2, timeout=BACK)

    killer = threading.Thread(target=go_on)
    killer.start()
    try:
        yield
    finally:
        over.set()
        killer.join()


def measure(kills: int, first: int) -> None:
    """Kill until so many kills are kept."""
    parted, hands = borrowed("support/parted.py"), borrowed("support/hands.py")
    patch = pytest.MonkeyPatch()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        held = parted.fitted(patch, parted.people(), parted.BOTH, folder / "held")
        ran = (folder / "held" / "run" / "executed.json").read_text()
        data = hands.in_files(parted.people(), folder / "parts")

        def make(number: int) -> Row:
            own, victims, fault = folder / str(number), list[int](), None
            began = time.monotonic()
            try:
                with start_local_cluster(2) as workers, killed(workers, random.Random(number), victims):
                    syn = parted.fitted(patch, data, parted.BOTH, own, engine=workers._client)
                parted.check_equal(held, syn)
                hold((own / "run" / "executed.json").read_text() == ran, "something else ran")
                ledger = Ledger.open(own / "ledger")
                hold([each["status"] for each in ledger.show()["runs"]] == ["done"], "not done")
                hold(ledger.spent.epsilon == syn.plan.epsilon, "not charged once")
            except (AssertionError, Fault, DoublureError) as error:
                fault = str(error)[:300] or "an assertion"
            shutil.rmtree(own)
            return {"kills": len(victims), "seconds": round(time.monotonic() - began, 1), "fault": fault}

        KEPT.until(kills, make, first=first)


if __name__ == "__main__":
    main(__doc__, KEPT, measure, lambda rows: f"{sum(row['kills'] > 0 for row in rows)} of them killed")
