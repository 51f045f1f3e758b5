"""Kill fits at random while they read, learn and count: in memory, in partitions, in SQL, over Dask, and with owners.

A case is a run of ``statistics`` with a ledger of its own. One of its processes is killed with -9 at a moment from the
clock, at most four times, and the run goes on after each. With owners the victim is the coordinator or an owner, each a
process of its own; over Dask it is the process that asks (``worker_kill.py`` kills workers). The noise follows from the
exact answer, and each draw is written down before it is made. So a draw that is made twice shows, and a run that comes
to its end gives, bit for bit, what one gives that nobody kills.

    python benchmarks/robustness/stage_kill.py --kills 100      # resumable; places whose extra is missing are left out
    python benchmarks/robustness/stage_kill.py --table

No failure in N kills bounds the failure rate at 3/N with 95 % confidence.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import pytest
from killing import Fault, Kept, Row, borrowed, hold, main

KEPT = Kept("stage_kill")
SESSIONS, OWNERS, PATIENCE = 4, 2, 300
WARM = (
    "doublure", "doublure.run.fitting", "doublure.run.engines", "doublure.ledger", "doublure.data.tables.opening",
    "doublure.methods.statistics.tables.method", "doublure.private.facts", "doublure.federated.simulate",
    "doublure.federated.silo", "doublure.federated.clients", "opendp.measurements", "pyarrow.csv", "safetensors.numpy",
)  # fmt: skip
LOST, ENDED, REFUSED = 3, 4, 2
"""Exit codes of a session: a draw is lost; an owner is gone; anything else was refused."""


def forked(act: Callable[[], int]) -> int:
    """Do something in a process of its own; return its number."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            signal.alarm(PATIENCE)  # a process that hangs ends, by no code that is taken for an answer
            code = act()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        finally:
            os._exit(code)
    return child


def awaited(child: int) -> int:
    """Return a process's exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Sockets:
    """A transport to owners, each behind a socket of its own; one that is gone does not answer."""

    def __init__(self, places: Mapping[int, Path]) -> None:
        self._links: dict[int, Connection] = {}
        for number, place in places.items():
            for _ in range(PATIENCE * 100):
                with contextlib.suppress(OSError, EOFError):
                    self._links[number] = Client(str(place))
                    break
                time.sleep(0.01)

    def nodes(self) -> Iterable[int]:
        """Return the owners' numbers."""
        return list(self._links)

    def send(self, messages: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
        """Ask all owners, and yield the answers of those that live."""
        from doublure.support.messages import Message

        for node, said in messages.items():
            with contextlib.suppress(OSError, EOFError):
                self._links[node].send_bytes(said.to_bytes())
        for node in messages:
            with contextlib.suppress(OSError, EOFError):
                answer = Message.from_bytes(self._links[node].recv_bytes())
                yield node, answer


def in_duckdb(frame: Any, path: Path) -> str:
    """Write a table into a file of DuckDB, and return its URL."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect(path) as connection:
        connection.register("given", pa.Table.from_pandas(frame, preserve_index=False))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return f"duckdb:///{path}"


class Case:
    """A run of its own, and the truth about what was drawn for it.

    Args:
        folder: Its own.
        place: Where its records are.
        world: The modules of the tests: ``parted``, ``owners``, ``killed``.
        cluster: The address of Dask's scheduler.
    """

    def __init__(self, folder: Path, place: str, world: Mapping[str, Any], cluster: str | None) -> None:
        folder.mkdir()
        self.folder, self.place, self.cluster = folder, place, cluster
        parted, owners = world["parted"], world["owners"]
        schema = owners.with_owners(parted.LEARNED) if place == "owners" else parted.LEARNED
        self.plan, self._noise, self._draws = parted.plan_of(schema), world["killed"].noted_noise, world["killed"].draws
        self.run, self.notes, self.ledgers = folder / "run", folder / "drawn", [folder / "ledger"]
        if place == "owners":
            self.data = owners.dealt(parted.people(), folder / "clients", OWNERS)
            for number in range(OWNERS):
                (folder / f"at-{number}").mkdir()
                self.ledgers.append(folder / f"at-{number}" / "ledger")
        elif place == "sql":
            self.data = in_duckdb(parted.people(), folder / "records.db")
        else:
            self.data = world["hands"].in_files(parted.people(), folder / "parts")
        from doublure.ledger import Ledger

        for path in self.ledgers:
            Ledger.create(path, dataset=path.parent.name, epsilon=1000.0, delta=0.5)

    def _fit(self) -> int:
        """Fit or go on, in this process; return its exit code."""
        import doublure as db
        from doublure.errors import DoublureError, LostRun, OwnerLost
        from doublure.federated.clients import Clients
        from doublure.federated.simulate import fit_remotely

        log = os.open(self.folder / "err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 2)
        self._noise(pytest.MonkeyPatch(), self.notes)
        resume = (self.run / "run.json").exists()
        try:
            if self.place == "owners":
                asked = Clients(Sockets({n: self.folder / f"socket-{n}" for n in range(OWNERS)}), self.plan)
                fit_remotely(asked, self.plan, ledger=self.ledgers[0], out=self.run, resume=resume, seed=1)
            else:
                more: dict[str, Any] = {"partitions": {"memory": "1GB"}, "sql": {"table": "people"}}.get(self.place, {})
                if self.place == "dask":
                    more = {"engine": "dask", "scheduler": self.cluster}
                db.fit(
                    self.data, self.plan, ledger=self.ledgers[0], out=self.run, resume=resume, seed=1, progress=False,
                    **more,
                )  # fmt: skip
        except DoublureError as error:
            os.write(log, f"{error}\n".encode())
            return LOST if isinstance(error, LostRun) else ENDED if isinstance(error, OwnerLost) else REFUSED
        return 0

    def _owner(self, number: int) -> int:
        """Answer for one owner until it is told no more."""
        from doublure.federated.silo import Silo
        from doublure.support.messages import Message

        home = self.folder / f"at-{number}"
        silo = Silo(
            name=f"owner {number}", data=str(self.data[number]), plan=self.plan, ledger=home / "ledger", folder=home
        )
        place = self.folder / f"socket-{number}"
        place.unlink(missing_ok=True)
        with Listener(str(place)) as listener, listener.accept() as link, contextlib.suppress(EOFError):
            while True:
                link.send_bytes(silo.answer(Message.from_bytes(link.recv_bytes())).to_bytes())
        return 0

    def session(self, *, kill: int | None = None, after: float = 0.0) -> tuple[int, bool]:
        """Fit, or go on; return the exit code of the process that asks, and whether one was killed.

        Args:
            kill: Who is killed: 0 for the process that asks, else an owner.
            after: So many seconds after all have begun.
        """
        for number in range(OWNERS):
            (self.folder / f"socket-{number}").unlink(missing_ok=True)
        owners = range(OWNERS) if self.place == "owners" else ()
        children = [forked(self._fit), *(forked(lambda n=number: self._owner(n)) for number in owners)]  # type: ignore[misc]
        if kill is not None:
            time.sleep(after)
            os.kill(children[kill], signal.SIGKILL)  # not yet waited for, so the number is still its own
        codes = [awaited(children[0])]
        for child in children[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)  # one that nobody has spoken to waits
            codes.append(awaited(child))
        hold(-signal.SIGALRM not in codes, f"a process hangs: {codes}")
        return codes[0], kill is not None and codes[kill] == -signal.SIGKILL

    @property
    def said(self) -> str:
        """What the last session was refused for."""
        file = self.folder / "err"
        return file.read_text()[-250:] if file.exists() else ""

    def hold_the_ledger_to_the_truth(self) -> None:
        """Ledgers are whole, and charged for all that was drawn, which was drawn once."""
        from doublure.ledger import Ledger

        drawn = self._draws(self.notes)
        hold(len(set(drawn)) == len(drawn), "something was drawn twice")
        for path in self.ledgers:
            ledger = Ledger.open(path)
            ledger.verify()
            runs = ledger._store.view().account.runs.values()
            charged = [run for run in runs if run.charge.rounded_up().epsilon > 0]
            hold(len(charged) <= 1, "charged twice")
            if path == self.ledgers[0]:
                paid = sum(run.authorised + len(run.drawn) for run in runs)
                hold(len(drawn) <= paid <= len(drawn) + 1, f"{len(drawn)} draws, {paid} paid")
            if drawn:
                hold(ledger.spent.epsilon == self.plan.epsilon, "something was drawn that is not charged")

    def result(self) -> Any:
        """Return what a finished run gives."""
        import doublure as db

        return db.load(self.run)


def one(case: Case, chance: random.Random, length: float, whole: Any, check_equal: Callable[..., None]) -> Row:
    """Kill one run at most four times, and bring it to its end; return what happened, and what was wrong."""
    row: Row = {"place": case.place, "kills": 0, "killed": [], "end": None, "draws": 0, "fault": None}
    try:
        for session in range(SESSIONS + 1):
            last = session == SESSIONS
            who = 0 if case.place != "owners" or chance.random() < 0.5 else chance.randrange(1, OWNERS + 1)
            code, killed = case.session(kill=None if last else who, after=chance.uniform(0, 0.8 * length))
            row["kills"] += killed
            row["killed"] += [who] * killed
            case.hold_the_ledger_to_the_truth()
            if code in (0, LOST):
                break
            refused = code == REFUSED and "cut off before it could begin" in case.said
            if refused:  # nothing is charged: it is begun anew
                shutil.rmtree(case.run)
            hold(killed or refused or code == 0, f"ended with {code}: {case.said}")
        row["draws"] = len(case._draws(case.notes))
        if code == LOST:
            row["end"] = "lost"
        else:
            if code != 0:  # who was killed asked for nothing any more
                code, _ = case.session()
                hold(code == 0, f"ended with {code}: {case.said}")
                case.hold_the_ledger_to_the_truth()
            row["end"] = "finished"
            check_equal(whole, case.result())
    except (Fault, AssertionError) as error:
        row["fault"] = str(error)[:300] or "an assertion"
    return row


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str | None]:
    """Yield the address of a scheduler with two workers; None without Dask."""
    if importlib.util.find_spec("distributed") is None:
        yield None
        return
    known = folder / "scheduler.json"
    words = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard", "--port", "0"]
    workers = [sys.executable, "-m", "distributed.cli.dask_worker", "--no-dashboard", "--nthreads", "1"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    beside = [subprocess.Popen([*words, "--scheduler-file", str(known)], **quiet)]
    beside += [subprocess.Popen([*workers, "--scheduler-file", str(known)], **quiet) for _ in range(2)]
    try:
        while not known.is_file():
            time.sleep(0.1)
        import json

        yield str(json.loads(known.read_text())["address"])
    finally:
        for process in beside:
            process.terminate()
        for process in beside:
            process.wait()


def measure(kills: int, first: int) -> None:
    """Kill until so many kills are kept."""
    world = {name: borrowed(f"support/{name}.py") for name in ("parted", "owners", "killed", "hands")}
    for name in WARM:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as place, cluster(Path(place)) as address:
        folder = Path(place)
        places = ["memory", "partitions", "owners"] + (["dask"] if address else [])
        places += ["sql"] if importlib.util.find_spec("duckdb") and importlib.util.find_spec("sqlglot") else []
        found = {}
        for name in places:
            whole = Case(folder / name, name, world, address)
            began = time.monotonic()
            code, _ = whole.session()
            hold(code == 0, f"a fit that nobody kills does not end: {whole.said}")
            found[name] = whole.result(), time.monotonic() - began

        def make(number: int) -> Row:
            rows = KEPT.rows()
            name = min(places, key=lambda place: sum(row["kills"] for row in rows if row["place"] == place))
            case = Case(folder / str(number), name, world, address)
            row = one(case, random.Random(number), found[name][1], found[name][0], world["parted"].check_equal)
            shutil.rmtree(case.folder)
            return row

        KEPT.until(kills, make, first=first)


def told(rows: list[Row]) -> str:
    """Return how many kills there were at each place, and how runs ended."""
    places = {
        place: sum(row["kills"] for row in rows if row["place"] == place) for place in sorted({*map(place_of, rows)})
    }
    ends = {end: sum(row["end"] == end for row in rows) for end in ("finished", "lost")}
    return f"of them {places}, ends {ends}"


def place_of(row: Row) -> str:
    """Return where a case's records were."""
    return str(row["place"])


if __name__ == "__main__":
    main(__doc__, KEPT, measure, told)
