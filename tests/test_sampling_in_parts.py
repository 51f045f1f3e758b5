"""A folder of parts holds exactly the rows that were asked for, the same for a seed whoever draws them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.errors import InputError, SettingError
from doublure.releasing import writing
from doublure.releasing.writing import WorkerProcesses, write_sample
from doublure.run.synthesizer import Synthesizer
from doublure.schema import kinds

SCHEMA = """
doublure: 1
kind: table
unit: {id: nr}
units: 300
columns:
  nr: {type: id}
  age: {type: integer, bounds: [0, 100], missing: true}
  job: {type: category, values: [cook, nurse], other: Other, missing: false}
  out: {type: category, values: ["no", "yes"], missing: false, roles: [condition], shares: {"no": 0.5, "yes": 0.5}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampling")
    draw = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "nr": np.arange(300),
            "age": draw.integers(0, 90, 300),
            "job": draw.choice(["cook", "nurse"], 300),
            "out": draw.choice(["no", "yes"], 300),
        }
    )
    plan = db.plan(
        db.Schema.parse(SCHEMA),
        method="statistics",
        epsilon=5.0,
        delta=1e-4,
        accountant="rdp",
        components=4,
        fit_steps=5,
    )
    ledger = db.Ledger.create(folder / "ledger", dataset="people", epsilon=10.0, delta=0.1)
    db.fit(frame, plan, ledger=ledger, out=folder / "run", seed=0)
    return folder / "run"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(writing, "PART_CHUNKS", 2)
    object.__setattr__(kinds.TABLES, "chunk", 40)
    yield
    object.__setattr__(kinds.TABLES, "chunk", 50_000)


def read(folder):
    found = sorted(folder.iterdir())
    assert [path.name for path in found] == [f"part-{number:05}.parquet" for number in range(len(found))]
    return pd.concat([pd.read_parquet(path) for path in found], ignore_index=True)


@pytest.mark.parametrize("n", [0, 1, 79, 80, 81, 333])
def test_exactly_n_rows_as_one_file_has_them(run, tmp_path, n):
    syn = db.load(run)
    assert write_sample(syn, tmp_path / "parts", n, seed=3) == n
    write_sample(syn, tmp_path / "one.parquet", n, seed=3)
    pd.testing.assert_frame_equal(read(tmp_path / "parts"), pd.read_parquet(tmp_path / "one.parquet"))
    assert len([*(tmp_path / "parts").iterdir()]) == max(1, -(-n // 80))


def test_the_same_rows_whoever_draws_them(run, tmp_path, monkeypatch):
    """Spawned processes know nothing of this test's small parts: the same function is asked here, in any order."""
    syn, seen = db.load(run), []

    class Pool:
        def __init__(self, processes, **named):
            seen.append(processes)

        def __enter__(self):
            return self

        def __exit__(self, *given):
            pass

        def map(self, draw, numbers):
            for number in reversed(numbers):
                seen.append(draw(number))
            return iter(seen[:0:-1])

    write_sample(syn, tmp_path / "one", 333, seed=3)
    monkeypatch.setattr(writing, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(writing, "_loaded", {})
    others = WorkerProcesses(run=run, processes=3)
    assert write_sample(syn, tmp_path / "many", 333, seed=3, others=others) == 333
    assert seen == [3, 13, 80, 80, 80, 80]
    pd.testing.assert_frame_equal(read(tmp_path / "one"), read(tmp_path / "many"))


@pytest.mark.slow
def test_processes_of_their_own_draw_the_same(run, tmp_path):
    object.__setattr__(kinds.TABLES, "chunk", 50_000)
    syn = db.load(run)
    for processes in (1, 2):
        writing.write_parts(syn, tmp_path / str(processes), 120, seed=3, run=run, processes=processes)
    pd.testing.assert_frame_equal(read(tmp_path / "1"), read(tmp_path / "2"))


def test_what_is_asked_for_is_drawn_in_parts_too(run, tmp_path):
    syn = db.load(run)
    for given in ({"out": "yes"}, {"job": "cook"}, {"out": "yes", "job": "cook"}):
        folder = tmp_path / "-".join(given)
        assert write_sample(syn, folder, 200, seed=3, given=given) == 200
        found = read(folder)
        assert len(found) == 200
        assert all((found[name].astype(str) == value).all() for name, value in given.items())
        assert found["nr"].tolist() == [*range(1, 201)]


def test_rows_found_by_rejection_are_drawn_by_one_process(run, tmp_path):
    with pytest.raises(SettingError, match="must be 1"):
        write_sample(
            db.load(run), tmp_path / "x", 9, given={"job": "cook"}, others=WorkerProcesses(run=run, processes=2)
        )
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(SettingError, match="draw the parts"):
        write_sample(db.load(run), tmp_path / "x.csv", 9, others=WorkerProcesses(run=run, processes=2))
    with pytest.raises(SettingError, match="found by rejection"):
        db.load(run).sample_chunks(9, given={"job": "cook"}, first=1)


def test_a_folder_is_whole_or_not_there(run, tmp_path, monkeypatch):
    syn, written = db.load(run), []

    def broken(*given):
        written.append(1)
        if len(written) == 3:
            raise KeyboardInterrupt
        return write(*given)

    write = writing._write
    monkeypatch.setattr(writing, "_write", broken)
    with pytest.raises(KeyboardInterrupt):
        write_sample(syn, tmp_path / "parts", 333, seed=3)
    assert [*tmp_path.iterdir()] == []
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(InputError, match="file exists; give a new or an empty folder"):
        write_sample(syn, tmp_path / "full", 9)


def test_few_rows_are_held_at_a_time(run, tmp_path, monkeypatch):
    sizes, draw = [], Synthesizer._draw
    monkeypatch.setattr(Synthesizer, "_draw", lambda syn, size, *given: sizes.append(size) or draw(syn, size, *given))
    write_sample(db.load(run), tmp_path / "parts", 333, seed=3)
    assert sizes == [40] * 8 + [13]
    groups = [pq.ParquetFile(path).num_row_groups for path in sorted((tmp_path / "parts").iterdir())]
    assert groups == [2, 2, 2, 2, 1]


def test_the_command(run, tmp_path, capsys):
    from typer.testing import CliRunner

    made = CliRunner().invoke(app, ["sample", str(run), "-n", "90", "-o", str(tmp_path / "folder"), "--seed", "3"])
    assert made.exit_code == 0, made.output
    assert len(read(tmp_path / "folder")) == 90
    assert writing.WRITERS["table"].in_parts
