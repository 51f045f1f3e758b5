"""Ranks on this machine: two processes over gloo give what one gives; a dead one of ``torchrun`` costs one session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import rank_program
import tiers
from rank_links import on_ranks
from safetensors.numpy import load_file

import doublure as db
from doublure.errors import SettingError
from doublure.run.fitting import fit
from doublure.run.ranks import FollowerRun, lead_ranks

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "TORCHELASTIC_ERROR_FILE": os.devnull}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kills processes by their number")


def torchrun(size: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run a program on so many ranks."""
    return subprocess.run(
        [*TORCHRUN, str(size), *map(str, words)], env=ENVIRONMENT, text=True, capture_output=True, timeout=300
    )


# -- equal to one process --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both(small, request, tmp_path_factory):
    """Plans of two methods, or of all, fitted in one process and by two ranks, given equal coins, pairing and noise."""
    folder = tmp_path_factory.mktemp("both")
    common = {"epsilon": 2.0, "delta": 1e-4, "accountant": "rdp"}
    few = {"components": 4, "fit_steps": 5, "groups": 2}
    several = db.Schema.parse(small.declared_text.replace("unit: {id: row}", "unit: {id: row, max_records: 2}"))
    plans = {"dpgan": small.plan, "statistics": db.plan(small.declared, method="statistics", **common, **few)}
    if tiers.ALL:
        letters = request.getfixturevalue("letters")
        critic = {"critic_share": 0.4, "critic_lot": 64, "critic_steps": 4, "critic_width": 8, "critic_depth": 1}
        plans |= {
            "several": db.plan(several, method="dpgan", **common, **small.tiny),
            "guided": db.plan(small.declared, method="guided", **common, **few, **critic),
            "bayesgan": db.plan(small.declared, method="bayesgan", epsilon=3.0, delta=1e-4, **small.tiny, distances=8),
            "moments": letters.plan(teacher="mixture"),
            "latents": letters.plan(teacher="critic", labeller_share=0.3, labeller_steps=2, view_images=100),
        }
    frame = small.frame()
    twice = frame.assign(row=np.arange(len(frame)) // 2)
    for name, plan in plans.items():
        plan.save(folder / f"{name}.plan.json")
        if plan.method == "latentgan":
            np.savez(folder / f"{name}.data.npz", **request.getfixturevalue("letters").private)
        else:
            (twice if name == "several" else frame).to_csv(folder / f"{name}.data.csv", index=False)
    assert rank_program.fit_on_two(folder, folder / "two") == [0, 0]
    with pytest.MonkeyPatch.context() as patch:
        rank_program.fit_all(folder, folder / "one", patch)
    return folder


def sums(folder: Path, name: str) -> list[np.ndarray]:
    with np.load(folder / f"{name}.npz") as kept:
        return [kept[key] for key in kept.files]


def cases(first: object, *others: object) -> list[object]:
    """Return the plans of a test: one, and those of the exhaustive tier. Threads of private/test_ranks.py have more."""
    return [first, *(pytest.param(name, marks=tiers.exhaustive) for name in others)]


WHOLE = cases("statistics", "moments")
REAL = cases("dpgan", "several", "guided", "bayesgan", "latents")


@pytest.mark.parametrize("name", WHOLE)
def test_counts_and_grid_sums_are_equal_to_the_last_bit(both, name):
    one, two = sums(both / "one", name), sums(both / "two", name)
    assert len(one) == len(two) > 0
    for mine, theirs in zip(one, two, strict=True):
        assert mine.dtype == theirs.dtype == np.int64
        assert mine.tolist() == theirs.tolist()
    files = [load_file(both / way / name / "generator.safetensors") for way in ("one", "two")]
    assert {key: value.tobytes() for key, value in files[0].items()} == {
        key: value.tobytes() for key, value in files[1].items()
    }


@pytest.mark.parametrize("name", REAL)
def test_gradients_are_equal_but_for_rounding(both, name):
    one, two = sums(both / "one", name), sums(both / "two", name)
    assert len(one) == len(two) >= 6
    compared = 0
    for mine, theirs in zip(one, two, strict=True):
        assert mine.shape == theirs.shape
        assert theirs.dtype == (mine.dtype if mine.dtype != np.float32 else np.float64)  # of several, rounded once
        if np.issubdtype(mine.dtype, np.floating):
            assert np.abs(mine - theirs).max() <= 1e-6 * np.abs(mine).max()
            compared += np.abs(mine).max() > 0
    assert compared >= 4


@pytest.mark.parametrize("name", [*WHOLE, *REAL])
def test_what_ran_and_what_was_charged_are_equal(both, name):
    told = [json.loads((both / way / name / "executed.json").read_text()) for way in ("one", "two")]
    assert told[0] == told[1]
    assert all(entry["lost"] == 0 for entry in told[1])
    kinds = [
        [record.kind for record in db.Ledger.open(both / way / f"{name}.ledger").entries] for way in ("one", "two")
    ]
    assert kinds[0] == kinds[1]


# -- what a user types -----------------------------------------------------------------------------------------------


@pytest.fixture
def typed(small, tmp_path):
    """What a user has: data, a plan that takes its time, a ledger."""
    plan = db.plan(
        small.bought,
        method="dpgan",
        epsilon=2.0,
        delta=1e-4,
        accountant="rdp",
        **(small.tiny | {"steps": 400, "checkpoints": 20}),
    )
    plan.save(tmp_path / "plan.json")
    small.book(tmp_path)
    return small.csv(tmp_path).parent


def words(folder: Path, *more: str) -> list[object]:
    return [
        "-m", "doublure", "fit", folder / "people.csv", "--plan", folder / "plan.json", "--ledger",
        folder / "people.ledger", "-o", folder / "run", *more,
    ]  # fmt: skip


def ranks_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """Return the process of each rank that torchrun has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    found = {}
    for child in children:
        told = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        of = dict(each.partition(b"=")[::2] for each in told)
        if b"RANK" in of:
            found[int(of[b"RANK"])] = int(child)
    return found


@contextmanager
def started(*words: object) -> Iterator[subprocess.Popen[str]]:
    """Start two ranks; however the test ends, they are ended, and their pipes are closed."""
    command = [*TORCHRUN, "2", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=ENVIRONMENT, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.terminate()  # torchrun ends its ranks


def until(done, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert process.poll() is None, process.stderr.read()[-3000:]
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("rank", cases(1, 0))
def test_a_killed_rank_ends_the_run_which_goes_on_with_another_number(typed, rank, doublure):
    with started(*words(typed)) as process:
        until((typed / "run/internal/checkpoint.safetensors").exists, process)
        os.kill(ranks_of(process)[rank], signal.SIGKILL)
        said = process.communicate(timeout=120)[1]
    assert process.returncode != 0
    plan = db.Plan.load(typed / "plan.json")
    ledger = db.Ledger.open(typed / "people.ledger")
    assert ledger.spent.epsilon == plan.epsilon
    if rank:
        assert "rank 1 is gone" in said or "stopped" in said
        assert "go on with --resume" in said
        assert json.loads((typed / "run/run.json").read_text())["status"] == "interrupted"
    authorised = max(run.authorised for run in ledger._store.view().account.runs.values())
    assert 0 < authorised < plan.steps
    again = words(typed, "--resume")
    if rank:
        doublure(*again[2:])
    else:
        done = torchrun(3, *again)
        assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((typed / "run/executed.json").read_text())[-1]
    assert told["drawn"] + told["lost"] == plan.steps
    assert told["event"] == told["expected"]
    assert db.Ledger.open(typed / "people.ledger").spent.epsilon == plan.epsilon
    assert len(db.load(typed / "run").sample(3)) == 3


@tiers.exhaustive
def test_a_rank_that_fails_says_why_once_and_nothing_is_charged(typed):
    """Here each rank looks for the data in a folder of its own, and one has none; private/test_ranks.py has threads."""
    (typed / "0").mkdir()
    (typed / "1").mkdir()
    (typed / "people.csv").rename(typed / "0/people.csv")
    shell = f'cd "{typed}/$RANK" && exec {sys.executable} "$@"'
    arguments = [str(word) for word in words(typed)]
    arguments[3] = "people.csv"
    done = torchrun(2, "--no-python", "sh", "-c", shell, "sh", *arguments)
    assert done.returncode == 1
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("doublure:"))
    assert said.startswith("doublure: people.csv: rank 1: ")
    assert not (typed / "run").exists()


def test_a_method_that_trains_on_records_themselves_is_refused(small, tmp_path):
    """Here ranks are threads: the refusal stands before anything that processes do."""
    plan, ledger = db.plan(small.declared, method="gan", **small.tiny), small.book(tmp_path)

    def first(link):
        with lead_ranks(link) as ranks:
            fit(small.frame(), plan, ledger=ledger, out=tmp_path / "run", ranks=ranks)

    with pytest.raises(SettingError, match=r"^ranks: gan trains on records themselves; fit in one process$"):
        on_ranks(first, lambda link: FollowerRun(link).follow(small.frame()))
    assert not (tmp_path / "run").exists()
    assert [record.kind for record in ledger.entries] == ["open"]
