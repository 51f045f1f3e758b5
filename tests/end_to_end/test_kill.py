"""Kill -9 anywhere: the ledger never knows of less than was drawn, and the run comes to its end all the same.

This file is also a program: a warm interpreter that forks one child a session, so that a kill costs no start of Python.
A child writes down, unbuffered, what it is about to draw and what it has drawn: the truth that the ledger is held
against. Told to, it kills itself at its n-th turning point: before a draw, or before, within or after something is
written. A kill leaves on disk what was there at the last of these points, so dying at each of them in turn is dying
anywhere.
"""

from __future__ import annotations

import hashlib
import importlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from doublure.ledger.torn import SOMETHING

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

WARM = (
    "doublure", "doublure.cli.main", "doublure.cli.fit", "doublure.run.fitting", "doublure.ledger",
    "doublure.data.tables.opening", "doublure.encode.table", "doublure.methods.dpgan.method",
    "doublure.training.gan_loop", "doublure.private.accounting", "doublure.noisy_counts", "doublure.private.facts",
    "doublure.private.mechanism", "doublure.private.noise", "doublure.run.synthesizer", "opendp.measurements",
    "opendp.transformations", "pyarrow.csv", "pyarrow.parquet", "safetensors.torch", "torch.func",
)  # fmt: skip
TURNS = {"mkdir", "file", "half-record", "record", "draw", "learn", "learned"}


# -- the nursery -------------------------------------------------------------------------------------------------------


def main() -> None:
    """Fork a child for each line of standard input; answer with its exit code, or of one beside others its number."""
    for name in WARM:
        importlib.import_module(name)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "wait" in asked:
            print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
            continue
        child = os.fork()
        if child == 0:
            signal.alarm(120)  # a child that hangs ends, by no code that a test takes for an answer
            os._exit(_session(asked))
        if asked.get("beside"):
            print(child, flush=True)
            continue
        if asked["after"] is not None:
            time.sleep(asked["after"])
            os.kill(child, signal.SIGKILL)  # not yet waited for, so the number is still its own
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os._exit(0)  # what was imported is not taken apart


def _session(asked: dict[str, object]) -> int:
    """Fit as told, watched; return the exit code."""
    code = 70
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(asked["notes"] + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        _watch(asked)
        if asked["words"]:
            from doublure.cli.main import run

            code = run(asked["words"]) or 0
        else:
            code = _fit(asked)
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return code


def _fit(asked: dict[str, object]) -> int:
    import doublure as db
    from doublure.run import fitting

    fitting._refuse_forged = lambda plan: None  # it prices the plan again, which takes longer than the fit
    fitting.rehearse = lambda plan, *, device: None  # as in other tests: so does a rehearsal
    plan = db.Plan.from_json(asked["plan"], reprice=False)
    more = {"progress": _waiting(asked)} if "inside" in asked else {}
    try:
        db.fit(asked["data"], plan, ledger=asked["ledger"], out=asked["out"], resume=asked["resume"], seed=1, **more)
    except db.errors.DoublureError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


def _waiting(asked: dict[str, object]) -> object:
    """Return a listener that says that it is inside, and stays there until it may leave."""
    from doublure.support.progress import SilentProgress

    class Waiting(SilentProgress):
        def at(self, done: int) -> None:
            Path(asked["inside"]).touch()
            while not Path(asked["leave"]).exists():
                time.sleep(0.01)

    return Waiting()


def _watch(asked: dict[str, object]) -> None:
    """Note every turning point and every draw, and die at the turning point asked for."""
    import torch

    from doublure.private import noise, whole_noise

    torch.set_num_threads(1)
    notes = os.open(asked["notes"] + "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    counts = itertools.count(1)
    write, replace, mkdir, normal = os.write, os.replace, os.mkdir, noise.OsKeyedNoise.normal
    os.fsync = os.fstat  # a kill keeps what the disk does not have yet

    def note(*words: str) -> None:
        write(notes, (" ".join(words) + "\n").encode())

    def turn(name: str) -> bool:
        note("turn", name)
        return asked["turn"] is not None and next(counts) == asked["turn"]

    def die() -> None:
        os.kill(os.getpid(), asked["signal"])

    def watched_write(fd: int, data: bytes) -> int:
        if turn("half-record"):
            write(fd, data[: len(data) // 2])
            die()
        written = write(fd, data)
        if turn("record"):
            die()
        return written

    def watched(function, name: str, after: str | None = None):
        def call(*arguments, **named):
            if name in ("draw", "learn"):
                note(name)  # before the turning point: if in doubt, it was drawn
            if turn(name):
                die()
            result = function(*arguments, **named)
            if name == "draw":
                note("noise", hashlib.sha256(result.values.tobytes()).hexdigest())
            if after is not None and turn(after):
                die()
            return result

        return call

    os.write, os.replace, os.mkdir = watched_write, watched(replace, "file"), watched(mkdir, "mkdir")
    noise.OsKeyedNoise.normal = watched(normal, "draw")
    for name in ("laplace", "thresholded"):  # the noise of facts
        setattr(whole_noise, name, watched(getattr(whole_noise, name), "learn", after="learned"))


if __name__ == "__main__":
    main()


# -- what the tests see of it ------------------------------------------------------------------------------------------


class Nursery:
    """Runs one session at a time, and returns how it ended."""

    def __init__(self, folder: Path) -> None:
        self._errors = (folder / "nursery").open("w")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors, "text": True}
        self._process = subprocess.Popen([sys.executable, __file__], **pipes)
        self._line("ready")

    def _line(self, expected: str | None = None) -> str:
        line = self._process.stdout.readline().strip()
        assert line == expected if expected else line, Path(self._errors.name).read_text()
        return line

    def session(self, asked: dict[str, object]) -> int:
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()
        self._errors.close()


class Case:
    """A run of its own with a ledger of its own, and the truth about what was drawn for it."""

    def __init__(self, nursery, small, plan, folder: Path) -> None:
        folder.mkdir()
        self.nursery, self.plan, self.folder = nursery, plan, folder
        self.path = small.book(folder).path
        self.csv, self.run = small.csv(folder), folder / "run"
        self.kills = 0
        self._plan = json.loads(json.dumps(plan.to_json()))
        for name in ("notes", "err"):
            Path(f"{folder}/noted.{name}").touch()  # a child may be killed before it has opened them

    def fit(self, *, turn=None, after=None, resume=False, out=None, words=(), stop=False, **more) -> int:
        """Run one session; kill it, or stop it as a user does, at a turning point or after so many seconds."""
        paths = {"data": self.csv, "ledger": self.path, "out": out or self.run, "notes": f"{self.folder}/noted."}
        asked = {"plan": self._plan, "turn": turn, "after": after, "resume": resume}
        asked |= {"signal": signal.SIGINT if stop else signal.SIGKILL, "words": [str(word) for word in words]}
        code = self.nursery.session(asked | {name: str(path) for name, path in paths.items()} | more)
        self.kills += code == -signal.SIGKILL
        return code

    def notes(self, *first: str) -> list[str]:
        """Return the notes that begin so, without their beginning."""
        found = [line.split() for line in Path(f"{self.folder}/noted.notes").read_text().splitlines()]
        return [words[-1] for words in found if words[: len(first)] == list(first)]

    @property
    def said(self) -> str:
        """The last line on standard error of the last session, which must be the only one."""
        lines = Path(f"{self.folder}/noted.err").read_text().splitlines()
        assert len(lines) <= 1, lines
        return "".join(lines)

    def files(self) -> dict[str, object]:
        """Return ``run.json``, or nothing where there is none."""
        file = self.run / "run.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def authorised(self) -> int:
        """Return how many steps the ledger counts, a line that was cut short included."""
        return max((run.authorised for run in self.counted.runs.values()), default=0)

    def marked(self) -> set[str]:
        """Return which facts the ledger counts, a line that was cut short included."""
        return {what for run in self.counted.runs.values() for what in run.drawn}

    @property
    def counted(self):
        """What the ledger's records add up to."""
        import doublure as db

        return db.Ledger.open(self.path)._store.view().account

    def entries(self, kind: str):
        import doublure as db

        return [record for record in db.Ledger.open(self.path).entries if record.kind == kind]

    def hold_the_ledger_to_the_truth(self, where: object) -> None:
        """It is whole, knows of all that was drawn, and has charged for it in full."""
        import doublure as db

        ledger = db.Ledger.open(self.path)
        ledger.verify()
        drawn, learned = len(self.notes("draw")), len(self.notes("learn"))
        assert drawn <= self.authorised() <= self.plan.steps, where
        known = {access.purpose for access in self.plan.learned}
        assert learned <= len(self.marked()), where
        assert self.marked() <= known | {SOMETHING}, where
        assert len(self.entries("noise")) <= len(known), where
        # A reservation that was cut short is charged too: what was begun for it, nobody can tell from the file.
        charged = self.plan.epsilon if b'"body":{"charge":' in self.path.read_bytes() else 0.0
        assert ledger.spent.epsilon == charged, where

    def hold_to_its_end(self, where: object) -> None:
        """It ended inside one reservation, all of it spent, no noise repeated, and the synthesizer samples."""
        import doublure as db

        self.hold_the_ledger_to_the_truth(where)
        (reserved,) = self.entries("reserve")
        end = self.entries("close")[-1]
        assert (end.body["status"], end.body["steps"]) == ("done", self.plan.steps), where
        ledger = db.Ledger.open(self.path)
        assert (ledger.spent.epsilon, ledger.spent.delta) == (self.plan.epsilon, self.plan.delta), where
        assert len(set(self.notes("noise"))) == len(self.notes("noise")) <= self.plan.steps, where
        assert self.files()["status"] == "done", where
        self.hold_what_ran_to_the_plan(where)
        assert self.files()["ledger"]["reservation"] == reserved.body["id"], where
        assert len(db.load(self.run).sample(3)) == 3, where
        assert not list(self.run.rglob(".*.part")), where
        for line in (self.run / "log.jsonl").read_text().splitlines():
            json.loads(line)

    def hold_what_ran_to_the_plan(self, where: object) -> None:
        """Each access ran as it was priced: what was drawn is kept, but for one draw a kill, which counts."""
        from doublure.private.executed import as_priced, steps_of

        executed = json.loads((self.run / "executed.json").read_text())
        assert as_priced(executed), where
        assert [entry["purpose"] for entry in executed] == [access.purpose for access in self.plan.touches], where
        for entry, access in zip(executed, self.plan.touches, strict=True):
            assert entry["drawn"] + entry["lost"] == steps_of(access), where
        (trained,) = (entry for entry, access in zip(executed, self.plan.touches, strict=True) if access.path is None)
        assert trained["drawn"] <= len(self.notes("draw")), where
        assert trained["lost"] <= self.kills, where
        assert len(self.notes("noise")) - self.kills <= trained["drawn"], where

    def lost(self) -> bool:
        """Whether a fact was paid for, and what came of it is not kept."""
        known = [access.purpose for access in self.plan.learned]
        paid = known if SOMETHING in self.marked() else [name for name in known if name in self.marked()]
        return any(not (self.run / f"internal/answer-{known.index(name)}-0.safetensors").exists() for name in paid)

    def why_not(self) -> str | None:
        """Return in which words resuming has to be refused, from what is on disk; None if it has to succeed."""
        if not self.files():
            return "is not a run folder"
        if self.files()["status"] == "done":
            return "is finished"
        if not self.entries("reserve"):
            return "was cut off before it could begin"
        if not (self.run / "schema.yaml").exists() and self.lost():
            return "and keeping the answer, and the price covers one draw"
        if self.authorised() == self.plan.steps and not (self.run / "internal/checkpoint.safetensors").exists():
            return "kept no state and has no steps left"
        return None

    def resume(self, where: object) -> str | None:
        """Go on; return in which words that was refused, None if the run came to its end."""
        reason = self.why_not()
        before, authorised, drawn = self.entries("close"), self.authorised(), len(self.notes("draw"))
        code = self.fit(resume=True)
        if reason is not None:
            assert (code, reason in self.said) == (2, True), (where, self.said)
            assert len(self.notes("draw")) == drawn, where
            self.hold_the_ledger_to_the_truth(where)
            return reason
        assert code == 0, (where, self.said)
        # What was authorised and lost is not drawn again, and all that is left is.
        assert len(self.notes("draw")) - drawn == (0 if before else self.plan.steps - authorised), where
        self.hold_to_its_end(where)
        return None


@pytest.fixture(scope="module")
def nursery(tmp_path_factory):
    made = Nursery(tmp_path_factory.mktemp("nursery"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def bought(small):
    import doublure as db

    return db.plan(
        small.bought, method="dpgan", epsilon=small.epsilon, delta=small.delta, accountant="rdp", **small.tiny
    )


def test_killed_at_every_turn(nursery, small, bought, tmp_path):
    from tiers import by_tier  # not above: a program of its own finds no tests/support

    outcomes, noise = set(), []
    for turn in itertools.count(1, by_tier(3, 1)):
        case = Case(nursery, small, bought, tmp_path / str(turn))
        code = case.fit(turn=turn)
        where = turn, case.notes("turn")[-1]
        case.hold_the_ledger_to_the_truth(where)
        if code == 0:
            break
        assert code == -signal.SIGKILL, (where, case.said)
        outcomes.add(case.resume(where))
        noise += case.notes("noise")
    case.hold_to_its_end("never killed")
    assert set(case.notes("turn")) == TURNS
    assert outcomes == {
        None,
        "is not a run folder",
        "was cut off before it could begin",
        "and keeping the answer, and the price covers one draw",
    }
    assert len(set(noise)) == len(noise) > by_tier(15, 50)  # all of them with the same seed
    shutil.rmtree(tmp_path)


@pytest.fixture(scope="module")
def third_draw(nursery, small, tmp_path_factory):
    """Return at which turning point the third noisy step of the small plan is about to be drawn."""
    whole = Case(nursery, small, small.plan, tmp_path_factory.mktemp("third") / "whole")
    assert whole.fit() == 0
    return [place for place, turn in enumerate(whole.notes("turn"), start=1) if turn == "draw"][2]


def test_killed_again_at_every_turn_of_going_on(nursery, small, third_draw, tmp_path):
    from tiers import by_tier

    first = Case(nursery, small, small.plan, tmp_path / "first")
    assert first.fit(turn=third_draw) == -signal.SIGKILL
    assert (first.authorised(), len(first.notes("noise"))) == (3, 2)
    for turn in itertools.count(1, by_tier(3, 1)):
        case = Case(nursery, small, small.plan, tmp_path / str(turn))
        shutil.copytree(first.folder, case.folder, dirs_exist_ok=True)
        case.kills = first.kills
        code = case.fit(turn=turn, resume=True)
        where = turn, case.notes("turn")[-1]
        case.hold_the_ledger_to_the_truth(where)
        if code == 0:
            break
        assert code == -signal.SIGKILL, (where, case.said)
        assert case.resume(where) is None
    case.hold_to_its_end("killed once")
    assert turn > 15
    shutil.rmtree(tmp_path)


def test_killed_at_any_moment_and_again(nursery, small, bought, tmp_path):
    """From without, by the clock: in the midst of whatever it is doing, the library's own code included."""
    draw = random.Random(1)
    whole = Case(nursery, small, bought, tmp_path / "whole")
    began = time.monotonic()
    assert whole.fit() == 0
    length = time.monotonic() - began
    for number in range(6):
        case = Case(nursery, small, bought, tmp_path / str(number))
        for session in range(4):
            code = case.fit(after=draw.uniform(0, 1.2 * length), resume=session > 0)
            assert code in (0, -signal.SIGKILL), (number, session, case.said)
            case.hold_the_ledger_to_the_truth((number, session))
            if code == 0 or case.why_not() is not None:
                break
        if case.why_not() == "is finished":
            case.hold_to_its_end(number)
        else:
            case.resume(number)


def test_of_two_copies_of_a_killed_run_one_goes_on(nursery, small, third_draw, tmp_path):
    case = Case(nursery, small, small.plan, tmp_path / "case")
    assert case.fit(turn=third_draw) == -signal.SIGKILL
    shutil.copytree(case.run, tmp_path / "copy")
    assert case.resume("the first") is None
    drawn = case.notes("draw")
    assert case.fit(resume=True, out=tmp_path / "copy") == 2
    assert case.said
    assert case.notes("draw") == drawn
    case.hold_to_its_end("both tried")


def _going_on(case: Case, number: int, leave: Path) -> Callable[[], tuple[int, str]]:
    """Start a session that goes on with a run; who trains waits within until ``leave`` is there.

    Returns:
        A function that waits for its end, and returns its exit code and what it said.
    """
    notes = f"{case.folder}/{number}."
    Path(notes + "notes").touch()
    more = {"notes": notes, "inside": str(case.folder / "inside"), "leave": str(leave), "beside": True}
    process = case.fit(resume=True, **more)
    return lambda: (case.nursery.session({"wait": process}), Path(notes + "err").read_text())


def _contents(*places: Path) -> dict[Path, tuple[bytes, int]]:
    """Return what all files hold, and when each was written."""
    files = [path for place in places for path in (place.rglob("*") if place.is_dir() else [place])]
    return {path: (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns) for path in files}


def _killed(nursery, small, third_draw: int, folder: Path) -> Case:
    case = Case(nursery, small, small.plan, folder / "case")
    assert case.fit(turn=third_draw) == -signal.SIGKILL
    return case


def test_who_loses_a_race_to_go_on_writes_nothing(nursery, small, third_draw, tmp_path):
    """Not even a file that the winner is just about to put in its place is touched."""
    case = _killed(nursery, small, third_draw, tmp_path)
    winner = _going_on(case, 0, tmp_path / "leave")
    deadline = time.monotonic() + 60
    while not (case.folder / "inside").exists():
        assert time.monotonic() < deadline, Path(f"{case.folder}/0.err").read_text()
        time.sleep(0.01)
    (case.run / ".generator.safetensors.aa.part").write_bytes(b"half-written by the winner")
    before = _contents(case.run, case.path)
    for loser in [_going_on(case, number, tmp_path / "leave") for number in (1, 2)]:
        code, said = loser()
        assert (code, "is in use by another process" in said) == (2, True), said
    assert _contents(case.run, case.path) == before
    (case.run / ".generator.safetensors.aa.part").unlink()
    (tmp_path / "leave").touch()
    assert winner() == (0, "")
    assert len(case.entries("resume")) == 1
    assert case.files()["status"] == "done"


def test_of_three_that_go_on_at_once_one_does(nursery, small, third_draw, tmp_path):
    case = _killed(nursery, small, third_draw, tmp_path)
    (tmp_path / "leave").touch()
    racing = [_going_on(case, number, tmp_path / "leave") for number in range(3)]
    codes, said = zip(*(ended() for ended in racing), strict=True)
    assert sorted(codes) == [0, 2, 2], said
    assert all("in use by" in text or "is finished" in text for text in said if text)
    assert len(case.entries("resume")) == 1
    assert case.files()["status"] == "done"


def test_a_copy_that_loses_is_left_as_it_was(nursery, small, third_draw, tmp_path):
    """Two copies share no lock; the ledger's decides before either folder is written to."""
    case = _killed(nursery, small, third_draw, tmp_path)
    shutil.copytree(case.run, tmp_path / "copy")
    (tmp_path / "copy" / ".run.json.aa.part").write_bytes(b"left half-written")
    assert case.fit(turn=6, resume=True) == -signal.SIGKILL
    assert len(case.entries("resume")) == 1
    before = _contents(tmp_path / "copy", case.path)
    assert case.fit(resume=True, out=tmp_path / "copy") == 2
    assert "was resumed elsewhere" in case.said
    assert _contents(tmp_path / "copy", case.path) == before
    assert case.fit(resume=True) == 0


def test_a_user_who_stops_the_command_can_go_on(nursery, small, third_draw, tmp_path):
    case = Case(nursery, small, small.plan, tmp_path / "case")
    small.plan.save(tmp_path / "plan.json")
    words = ["fit", case.csv, "--ledger", case.path, "-o", case.run, "--plan", tmp_path / "plan.json"]
    assert case.fit(words=words, turn=third_draw, stop=True) == 130
    errors = Path(f"{case.folder}/noted.err").read_text().splitlines()
    assert errors[-1].endswith("stopped; what was spent stays spent; go on with --resume")
    assert not any("Traceback" in line for line in errors)
    assert Path(f"{case.folder}/noted.out").read_text() == ""
    assert case.files()["status"] == "interrupted"
    assert len(case.notes("noise")) == 3
    case.hold_the_ledger_to_the_truth("stopped")
    assert case.fit(words=[*words[:-2], "--resume", "--json"]) == 0
    assert json.loads(Path(f"{case.folder}/noted.out").read_text())["ok"] is True
    case.hold_to_its_end("resumed")
