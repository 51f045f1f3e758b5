"""Kill -9 at random moments: the ledger never knows of less than was drawn, and the run comes to its end all the same.

A warm interpreter forks one child a session, so that a kill costs no start of Python. The child writes a byte to a file,
unbuffered, before each noisy step and before each learned fact: what is in the file is at least what was drawn.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import doublure as db

STEPS, KEPT = 60, 12
SETTINGS = {
    "steps": STEPS,
    "checkpoints": KEPT,
    "lot_size": 32,
    "width": 8,
    "critic_width": 8,
    "noise_width": 4,
    "generator_batch": 16,
}

NURSERY = """
import json, os, sys, time
import torch
torch.set_num_threads(1)
import doublure as db
from doublure import fitting, run_folder, files
from doublure.data import tables
from doublure.encode import table
from doublure.methods import adversarial, dpgan
from doublure.private import facts, mechanism, noise, statistics
import opendp.measurements, opendp.transformations, pyarrow.csv, safetensors.torch

marks = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def marked(function, mark):
    def call(*arguments, **named):
        os.write(marks, mark)
        time.sleep(0.002)
        return function(*arguments, **named)
    return call

noise.OsKeyedNoise.normal = marked(noise.OsKeyedNoise.normal, b"s")
facts.learn = marked(facts.learn, b"f")
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 70
        try:
            db.fit(asked["data"], db.Plan.from_json(asked["plan"], reprice=False), ledger=asked["ledger"],
                   out=asked["out"], resume=asked["resume"])
            code = 0
        except db.errors.DoublureError as error:
            sys.stderr.write(str(error) + "\\n")
            code = error.exit_code
        finally:
            os._exit(code)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Nursery:
    """Forks a fit, and tells how it ended."""

    def __init__(self, marks: Path, errors: Path) -> None:
        self.marks, self.errors = marks, errors
        with errors.open("w") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-c", NURSERY, str(marks)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True,
            )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n", errors.read_text()

    def fit(self, *, kill_when=None, number: int = signal.SIGKILL, **asked: object) -> int:
        """Run one session and return its exit code; kill it as soon as ``kill_when()`` holds."""
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        child = int(self._process.stdout.readline())
        if kill_when is not None:
            while not kill_when():
                time.sleep(0.0005)
                if Path(f"/proc/{child}/stat").exists() and _ended(child):
                    break
            os.kill(child, number)
        return int(self._process.stdout.readline())

    def count(self, mark: bytes) -> int:
        return self.marks.read_bytes().count(mark) if self.marks.exists() else 0

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _ended(child: int) -> bool:
    """Say whether a child is a zombie: it has come to its own end and cannot be killed any more."""
    try:
        return Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def nursery(tmp_path):
    made = Nursery(tmp_path / "marks", tmp_path / "errors")
    yield made
    made.close()


@pytest.fixture(scope="module")
def declared(small):
    return db.plan(small.declared, method="dpgan", epsilon=2.0, delta=1e-4, accountant="rdp", **SETTINGS)


@pytest.fixture(scope="module")
def bought(small):
    return db.plan(small.bought, method="dpgan", epsilon=2.0, delta=1e-4, accountant="rdp", **SETTINGS)


@pytest.fixture
def asked(small, tmp_path):
    def ask(plan, **changes):
        paths = {
            "data": str(small.csv(tmp_path)),
            "ledger": str(tmp_path / "people.ledger"),
            "out": str(tmp_path / "run"),
        }
        return {"plan": json.loads(json.dumps(plan.to_json())), "resume": False} | paths | changes

    return ask


def authorised(ledger):
    """Return the noisy steps and the facts that a ledger knows of, as it is on disk."""
    steps = [record.body["through_step"] for record in ledger.entries if record.kind == "advance"]
    return max(steps, default=0), sum(record.kind == "noise" for record in ledger.entries)


def check_the_ledger_tells_the_truth(nursery, path):
    ledger = db.Ledger.open(path)
    ledger.verify()
    steps, facts = authorised(ledger)
    assert nursery.count(b"s") <= steps <= STEPS
    assert nursery.count(b"f") <= facts
    if nursery.count(b"s") or nursery.count(b"f"):
        assert ledger.spent.epsilon == 2.0
    return ledger


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_at_random_while_training(nursery, small, declared, asked, tmp_path, seed):
    draw = random.Random(seed)
    small.book(tmp_path)
    ledger = tmp_path / "people.ledger"
    sessions = 0
    resume = False
    while True:
        before, reach = nursery.count(b"s"), draw.randrange(1, 18)
        moment = draw.random() * 0.004

        def due(before=before, reach=reach, moment=moment):
            if nursery.count(b"s") < before + reach:
                return False
            time.sleep(moment)  # between two steps, in the midst of one, while a state is written
            return True

        code = nursery.fit(kill_when=due, **asked(declared, resume=resume))
        sessions += 1
        assert code in (0, -signal.SIGKILL), nursery.errors.read_text()
        check_the_ledger_tells_the_truth(nursery, ledger)
        if code == 0:
            break
        resume = True
    assert sessions > 2
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["status"] == "done"
    assert nursery.count(b"s") <= STEPS
    assert len(db.load(tmp_path / "run").sample(5)) == 5
    assert not [path for path in (tmp_path / "run").rglob(".*.part")]
    for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines():
        json.loads(line)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_before_the_first_step(nursery, small, bought, asked, tmp_path):
    """Anywhere on the way to the first step: the next try goes on, begins anew, or says in one line why it cannot."""
    draw = random.Random(4)
    answers = set()
    for number in range(14):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = small.book(folder).path
        out, began, wait = folder / "run", time.monotonic(), draw.random() * 0.35

        def due(out=out, began=began, wait=wait):
            return out.exists() and time.monotonic() - began > wait

        code = nursery.fit(kill_when=due, **asked(bought, ledger=str(path), out=str(out)))
        ledger = db.Ledger.open(path)
        if code == 0:
            assert ledger.spent.epsilon == 2.0
            answers.add("finished")
            continue
        code = nursery.fit(**asked(bought, ledger=str(path), out=str(out), resume=True))
        ledger.verify()
        if code == 0:
            assert db.load(out).run["ledger"]["dataset"] == "people"
            assert ledger.spent.epsilon == 2.0
            answers.add("resumed")
            continue
        said = nursery.errors.read_text().splitlines()[-1]
        known = ("before it could begin", "their price covers one draw", "is not a run folder", "run.json is damaged")
        assert code == 2, said
        assert any(words in said for words in known), said
        if any(record.kind == "noise" for record in ledger.entries):
            assert ledger.spent.epsilon == 2.0
        answers.add("refused")
    assert answers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_of_two_copies_of_a_killed_run_one_goes_on(nursery, small, declared, asked, tmp_path):
    small.book(tmp_path)
    nursery.fit(kill_when=lambda: nursery.count(b"s") > 10, **asked(declared))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert nursery.fit(**asked(declared, resume=True)) == 0
    assert nursery.fit(**asked(declared, resume=True, out=str(tmp_path / "copy"))) == 2
    assert nursery.count(b"s") <= STEPS
    check_the_ledger_tells_the_truth(nursery, tmp_path / "people.ledger")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_session_draws_fresh_noise(nursery, small, declared, asked, tmp_path):
    """Two runs that are cut off at the same step and resumed have other weights, from the same seed and the same data."""
    states = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        path = small.book(folder).path
        before = nursery.count(b"s")
        out = str(folder / "run")
        nursery.fit(
            kill_when=lambda before=before: nursery.count(b"s") > before + 8,
            **asked(declared, ledger=str(path), out=out),
        )
        assert nursery.fit(**asked(declared, ledger=str(path), out=out, resume=True)) == 0
        states.append(db.load(out).generator.state_dict())
    assert any(not (states[0][name] == states[1][name]).all() for name in states[0])


def test_sigint_is_exit_130_and_can_be_resumed(small, declared, tmp_path):
    declared.save(tmp_path / "plan.json")
    small.book(tmp_path)
    words = ["fit", small.csv(tmp_path), "--ledger", tmp_path / "people.ledger", "-o", tmp_path / "run"]
    command = [sys.executable, "-m", "doublure", *map(str, words)]
    slow = (
        "import sys, time\nfrom doublure.private.noise import OsKeyedNoise\nnormal = OsKeyedNoise.normal\n"
        "OsKeyedNoise.normal = lambda *a, **k: (time.sleep(0.05), normal(*a, **k))[1]\n"
        "from doublure.cli.main import run\nrun(sys.argv[1:])\n"
    )
    first = [sys.executable, "-c", slow, *map(str, words), "--plan", str(tmp_path / "plan.json")]
    with subprocess.Popen(first, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "run" / "internal" / "checkpoint.safetensors").exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1].endswith("stopped; what was spent stays spent; go on with --resume")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "interrupted"
    done = subprocess.run([*command, "--resume", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] is True
    assert db.Ledger.open(tmp_path / "people.ledger").spent.epsilon == 2.0
