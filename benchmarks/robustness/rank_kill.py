"""Kill ranks of a fit at random, go on with another number of them, kill again: nothing drawn is ever under-counted.

A case is a run with a ledger of its own, fitted by two or three processes over gloo, each told who it is as
``torchrun`` tells it, but forked from a warm interpreter, and with nobody who ends the others when one dies. At a
moment from the clock one of them, whichever, is killed with -9; the run goes on with one to three, and is killed again,
at most three times, until it is brought to its end. Rank 0 writes down, unbuffered, what it is about to draw. After
every kill the ledger is held against that, and so is what ran when the run is done.

    python benchmarks/robustness/rank_kill.py --kills 10       # resumable: --kills 100 goes on; some seconds a kill
    python benchmarks/robustness/rank_kill.py --table

No failure in N kills bounds the failure rate at 3/N with 95 % confidence.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from killing import Fault, Kept, Row, borrowed, hold, main

KEPT = Kept("rank_kill")
KILLS_A_RUN, STEPS, PATIENCE = 3, 60, 1800
WARM = (
    "doublure.cli.main", "doublure.cli.fit", "doublure.run.fitting", "doublure.run.ranks", "doublure.ledger",
    "doublure.data.tables.opening", "doublure.encode.table", "doublure.methods.dpgan.method",
    "doublure.training.gan_loop", "doublure.private.facts", "opendp.measurements", "opendp.transformations",
    "pyarrow.csv", "safetensors.torch", "torch._dynamo", "torch.distributed", "torch.func",
)  # fmt: skip
REFUSED = (
    "is not a run folder",
    "does not exist",
    "was cut off before it could begin",
    "was cut off between paying for",
    "kept no state and has no steps left",
)


# -- one rank ----------------------------------------------------------------------------------------------------------


def rank(notes: Path, words: list[str], number: int, size: int, port: int) -> int:
    """Fit as the command line does, in this forked process; return its exit code.

    Rank 0 writes down what it is about to draw, before it does.
    """
    import torch

    from doublure.cli.main import run
    from doublure.private import noise, whole_noise
    from doublure.support import ranks

    ranks._MEETING = timedelta(seconds=300)  # on a busy machine
    signal.alarm(PATIENCE)  # a rank that hangs ends, by no code that is taken for an answer
    torch.set_num_threads(1)
    for file, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{notes}.{name}.{number}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), file)
    if size > 1:
        told = {"RANK": number, "LOCAL_RANK": number, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1"}
        told |= {"MASTER_PORT": port, "TORCHELASTIC_RUN_ID": "rank_kill"}
        os.environ |= {key: str(value) for key, value in told.items()}
    kept = os.open(f"{notes}.drawn", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def noted(owner: Any, name: str, word: str) -> None:
        honest = getattr(owner, name)

        def call(*arguments: Any, **named: Any) -> Any:
            os.write(kept, f"{word} {number}\n".encode())
            return honest(*arguments, **named)

        setattr(owner, name, call)

    noted(noise.OsKeyedNoise, "normal", "step")
    for name in ("laplace", "thresholded"):
        noted(whole_noise, name, "fact")
    try:
        run(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def forked(act: Callable[[], int]) -> int:
    """Do something in a process of its own; return its number."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = act()
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(code)
    return child


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


# -- one run -----------------------------------------------------------------------------------------------------------


class Case:
    """A run of its own, and the truth about what was drawn for it.

    Args:
        folder: Its own.
        plan: What is fitted.
        small: The small world of the tests.
    """

    def __init__(self, folder: Path, plan: Any, small: Any) -> None:
        folder.mkdir()
        self.folder, self.plan, self.notes = folder, plan, folder / "noted"
        plan.save(folder / "plan.json")
        self.kills = self.lost = 0
        self.data, self.ledger, self.run = small.csv(folder), small.book(folder).path, folder / "run"

    def session(self, size: int, *, kill: int | None = None, after: float = 0.0) -> tuple[int, bool]:
        """Fit, or go on, with so many ranks; return rank 0's exit code, and whether one was killed.

        Args:
            size: How many ranks.
            kill: Which of them is killed.
            after: So many seconds after all have begun.
        """
        words = ["fit", self.data, "--plan", self.folder / "plan.json", "--ledger", self.ledger, "-o", self.run]
        words += ["--resume"] if (self.run / "run.json").exists() else []
        given, port = [str(word) for word in words], free_port()
        children = [
            forked(lambda number=number: rank(self.notes, given, number, size, port))  # type: ignore[misc]
            for number in range(size)
        ]
        if kill is not None:
            time.sleep(after)
            with contextlib.suppress(ProcessLookupError):
                os.kill(children[kill], signal.SIGKILL)  # not yet waited for, so the number is still its own
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        hold(-signal.SIGALRM not in codes, f"a rank hangs: {codes}")
        return codes[0], kill is not None and codes[kill] == -signal.SIGKILL

    def drawn(self, word: str) -> int:
        """Return how often something was about to be drawn, which rank 0 alone may do."""
        file = Path(f"{self.notes}.drawn")
        lines = file.read_text().splitlines() if file.exists() else []
        hold(all(line.endswith(" 0") for line in lines), "a rank that is not the first has drawn")
        return sum(line.startswith(word) for line in lines)

    def hold_the_ledger_to_the_truth(self) -> None:
        """It is whole, knows of all that was drawn, and has charged for it in full."""
        import doublure as db

        ledger = db.Ledger.open(self.ledger)
        ledger.verify()
        runs = ledger._store.view().account.runs.values()
        steps, facts = self.drawn("step"), self.drawn("fact")
        hold(steps <= sum(run.authorised for run in runs) <= self.plan.steps, "steps under-counted")
        hold(facts <= sum(len(run.drawn) for run in runs), "facts under-counted")
        if steps or facts:
            hold(ledger.spent.epsilon == self.plan.epsilon, "something was drawn that is not charged")

    def end(self, size: int) -> str:
        """Bring it to its end; return how that went.

        Args:
            size: How many ranks do it.
        """
        import doublure as db
        from doublure.private.executed import as_priced

        before = self.drawn("step"), self.drawn("fact")
        code, _ = self.session(size)
        said = Path(f"{self.notes}.err.0").read_text()
        self.hold_the_ledger_to_the_truth()
        if code:
            hold(code == 2, f"ended with {code}: {said[-200:]}")
            known = [reason for reason in (*REFUSED, "is finished") if reason in said]
            hold(known, said[-200:])
            if known != ["is finished"]:
                hold((self.drawn("step"), self.drawn("fact")) == before, "a refused session has drawn")
                return "refused"
        told = json.loads((self.run / "executed.json").read_text())
        hold(as_priced(told), "another event than was priced")
        hold(told[-1]["drawn"] + told[-1]["lost"] == self.plan.steps, "steps are missing")
        hold(told[-1]["drawn"] <= self.drawn("step"), "more are told of than were drawn")
        hold(told[-1]["lost"] <= self.kills, "more steps are lost than there were kills")
        self.lost = told[-1]["lost"]
        child = forked(lambda: 0 if len(db.load(self.run).sample(3)) == 3 else 1)
        hold(os.waitpid(child, 0)[1] == 0, "nothing can be sampled")
        return "finished"


def one(case: Case, chance: random.Random, length: float) -> dict[str, Any]:
    """Kill one run at most three times, and bring it to its end; return what happened, and what was wrong."""
    row: dict[str, Any] = {"kills": 0, "ranks": [], "killed": [], "end": None, "fault": None}
    try:
        for _ in range(KILLS_A_RUN):
            size = chance.choice([2, 3])
            which = chance.randrange(size)
            code, killed = case.session(size, kill=which, after=chance.uniform(0, 1.1 * length))
            row["kills"] += killed
            case.kills = row["kills"]
            row["ranks"].append(size)
            row["killed"].append(which if killed else None)
            case.hold_the_ledger_to_the_truth()
            if code in (0, 2):
                break
        row["end"] = case.end(chance.choice([1, 2, 3]))
        row["steps"], row["facts"], row["lost"] = case.drawn("step"), case.drawn("fact"), case.lost
    except Fault as error:
        row["fault"] = str(error)[:300]
    return row


# -- many --------------------------------------------------------------------------------------------------------------


def measure(kills: int, first: int) -> None:
    """Kill until so many kills are kept."""
    import doublure as db

    world = borrowed("conftest.py")
    for name in WARM:
        importlib.import_module(name)
    settings = world.TINY | {"steps": STEPS, "checkpoints": 12}
    plan = db.plan(
        db.Schema.parse(world.BOUGHT), method="dpgan", epsilon=world.EPSILON, delta=world.DELTA, accountant="rdp",
        **settings,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        whole = Case(Path(folder) / "whole", plan, world.Small)
        began = time.monotonic()
        hold(whole.session(2) == (0, False), "a fit that nobody kills does not end")
        length = time.monotonic() - began

        def make(number: int) -> Row:
            case = Case(Path(folder) / str(number), plan, world.Small)
            row = one(case, random.Random(number), length)
            shutil.rmtree(case.folder)
            return row

        KEPT.until(kills, make, first=first)


def told(rows: list[Row]) -> str:
    """Return how many kills were of rank 0, and how runs ended."""
    ends = {end: sum(row["end"] == end for row in rows) for end in ("finished", "refused")}
    return f"{sum(row['killed'].count(0) for row in rows)} of rank 0, ends {ends}"


if __name__ == "__main__":
    main(__doc__, KEPT, measure, told)
