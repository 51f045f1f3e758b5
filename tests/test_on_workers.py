"""Fits whose records lie on workers: equal bit for bit to those that hold them, given the same noise."""

from __future__ import annotations

import json

import pytest
import torch
from hands import in_files, on_hands
from parted import BOTH, DECLARED, SCHEMAS, SEVERAL, check_equal, fitted, people, plan_of
from planting import plant
from tiers import crossed
from typer.testing import CliRunner

import doublure as db
from doublure.cli.main import app
from doublure.data.tables import opening
from doublure.errors import DataError, MissingExtra, NotAsPriced, SettingError
from doublure.ledger import Ledger
from doublure.private.mechanism import Mechanism
from doublure.private.remote import RemotePartitions, WorkerResponse
from doublure.run import worker_tasks
from doublure.run.worker_records import WorkerRecords
from doublure.support import extras

RULED = SEVERAL.replace("kind: table", "kind: table\nmisfit: coerce") + (
    'constraints:\n  - implies: {when: {job: cook}, then: {out: "no"}}\n'
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few records at a time."""
    torch.set_num_threads(1)
    monkeypatch.setattr(worker_tasks, "RECORDS_AT_ONCE", 37)
    monkeypatch.setattr(opening, "PIECE_RECORDS", 60)


HELD = {}


def held(patch, folder, schema, rows):
    if (schema, rows) not in HELD:
        syn = fitted(patch, people(rows), schema, folder / "held")
        HELD[schema, rows] = syn, json.loads((folder / "held" / "run" / "executed.json").read_text())
    return HELD[schema, rows]


def check_workers_change_nothing(patch, folder, schema, rows=500, **files):
    one, executed = held(patch, folder, schema, rows)
    asked = on_hands(in_files(people(rows), folder / "parts", **files), plan_of(schema))
    check_equal(one, fitted(patch, asked, schema, folder / "on workers"))
    assert executed == json.loads((folder / "on workers" / "run" / "executed.json").read_text())
    return asked


@pytest.mark.parametrize("schema", [*SCHEMAS, "ruled"])
def test_workers_change_nothing(monkeypatch, tmp_path, schema):
    asked = check_workers_change_nothing(monkeypatch, tmp_path, {**SCHEMAS, "ruled": RULED}[schema])
    assert len(asked._digests) == 4


def test_nor_do_row_groups(monkeypatch, tmp_path):
    files = {"files": 2, "ending": ".parquet", "group": 25}
    asked = check_workers_change_nothing(monkeypatch, tmp_path, BOTH, **files)
    assert len(asked._digests) == 8  # of 250 records in ten groups of 25, three at a time


def test_nor_a_table_without_records(monkeypatch, tmp_path):
    coerced = BOTH.replace("kind: table", "kind: table\nmisfit: coerce")
    check_workers_change_nothing(monkeypatch, tmp_path, coerced, rows=0, files=1)


MUTANTS = {
    "a record that is lost": (worker_tasks, "encode", ("[part.frame]", "[part.frame[1:]]")),
    "units not bounded": (worker_tasks, "keep_used", ("own.frame.iloc[used]", "own.frame")),
    "each piece bounded by itself": (worker_tasks, "assign_buckets", ("own.rows[:, 0]", "own.rows[:, 2]")),
    "units counted in each piece": (worker_tasks, "keep_used", ("len(share[1])", "len(share[0])")),
    "another piece's share": (
        worker_tasks,
        "select_share",
        ("places >> _PLACE_BITS == number", "places >> _PLACE_BITS == number // 2"),
    ),
    "a bucket left out": (WorkerRecords, "_bounded", ("range(count)", "range(1, count)")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_workers_that_change_something_are_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    with pytest.raises((AssertionError, SettingError, TypeError, ValueError, NotAsPriced)):
        check_workers_change_nothing(monkeypatch, tmp_path, BOTH)


def test_ids_do_not_leave_the_worker_that_reads_them(tmp_path):
    asked = on_hands(in_files(people(), tmp_path / "parts"), plan_of(SEVERAL))
    asked.read()
    moved = [own for name, own in asked._workers.asked if name in {"select_bucket", "bound_units", "select_share"}]
    assert moved
    assert not any("'p1" in repr(own) for own in moved)
    kept = asked._cells[0]
    assert "who" not in kept.frame


# -- each partition counts once ----------------------------------------------------------------------------------------


def twice(results):
    return [*results, *(each for each in results[:1] if isinstance(each, WorkerResponse))]


def lost(results):
    return results[1:] if isinstance(results[0], WorkerResponse) else results


def changed(results):
    return [each._replace(digest="0") if isinstance(each, WorkerResponse) else each for each in results]


@pytest.mark.parametrize(
    ("wrong", "schema"), crossed([(twice, NotAsPriced), (lost, NotAsPriced), (changed, DataError)], [DECLARED, BOTH])
)
def test_an_answer_that_is_doubled_lost_or_another_ends_the_run(monkeypatch, tmp_path, wrong, schema):
    change, error = wrong
    drawn = []
    monkeypatch.setattr(Mechanism, "_noised", lambda *given: drawn.append(given))
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    asked = on_hands(in_files(people(), tmp_path / "parts"), plan_of(schema), change)
    with pytest.raises(error):
        db.fit(asked, plan_of(schema), ledger=ledger, seed=1)
    assert not drawn  # none of it was given out, with noise or without
    assert [record.body["status"] for record in ledger.entries if record.kind == "close"] == ["no-noise-drawn"]
    assert ledger.spent.epsilon == 0


def test_that_they_do_is_seen(monkeypatch, tmp_path):
    plant(monkeypatch, RemotePartitions, "answers", ("left.discard(party)", "pass"))
    with pytest.raises((AssertionError, NotAsPriced)):
        check_workers_change_nothing(monkeypatch, tmp_path, DECLARED)


# -- rule 11: charged before it is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_charge_is_on_disk_before_a_worker_reads(monkeypatch, tmp_path, schema):
    ledger, charged = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5), []
    read = worker_tasks.DataPiece.chunks

    def seen(piece):
        charged.append([record.kind for record in Ledger.open(tmp_path / "ledger").entries])
        return read(piece)

    monkeypatch.setattr(worker_tasks.DataPiece, "chunks", seen)
    asked = on_hands(in_files(people(), tmp_path / "parts"), plan_of(SCHEMAS[schema]))
    db.fit(asked, plan_of(SCHEMAS[schema]), ledger=ledger, seed=0)
    assert charged == [["open", "reserve"]] * 4


@pytest.mark.parametrize("schema", [DECLARED, SEVERAL], ids=["declared", "several"])
def test_a_cell_that_does_not_fit_costs_nothing_and_is_not_named(tmp_path, schema):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    frame = people()
    frame["pay"] = frame["pay"].astype(str)
    frame.loc[400, "pay"] = "Kiruna"
    with pytest.raises(DataError, match="no real") as refused:
        db.fit(on_hands(in_files(frame, tmp_path / "parts"), plan_of(schema)), plan_of(schema), ledger=ledger)
    assert "Kiruna" not in str(refused.value)
    assert ledger.spent.epsilon == 0


def test_what_else_fails_on_a_worker_shows_no_cell(monkeypatch):
    monkeypatch.setattr(worker_tasks, "TableValues", lambda schema: {}["Kiruna"])
    with pytest.raises(TypeError, match="KeyError in encode") as failed:
        worker_tasks.encode(None, None)
    assert failed.value.__cause__ is None
    assert "Kiruna" not in str(failed.value)


def test_too_few_records_are_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    for name, schema in SCHEMAS.items():
        asked = on_hands(in_files(people()[:1], tmp_path / name, files=1), plan_of(schema))
        with pytest.raises(DataError, match="fewer than 2"):
            db.fit(asked, plan_of(schema), ledger=ledger)
    assert ledger.spent.epsilon == 0


def test_a_worker_of_another_version_is_refused(monkeypatch, tmp_path):
    asked = on_hands(in_files(people(), tmp_path / "parts"), plan_of(DECLARED))
    monkeypatch.setattr(worker_tasks, "__version__", "0.0")
    with pytest.raises(db.errors.InputError, match=r"worker: has doublure 0\.0; install"):
        db.fit(asked, plan_of(DECLARED), ledger=Ledger.create(tmp_path / "l", dataset="p", epsilon=99.0, delta=0.5))


def test_a_partition_shows_nothing_of_itself(tmp_path):
    asked = on_hands(in_files(people(), tmp_path / "parts"), plan_of(BOTH))
    asked.read()
    shown = [asked, asked.facts(), *(own for _, given in asked._workers.asked for own in given)]
    texts = {repr(each) for each in shown if not isinstance(each, (list, int))}
    assert texts == {
        "WorkerRecords(private)", "WorkerPartitions(private)", "DataPiece(private)", "PieceCells(private)",
        "BoundedUnits(private)", "WorkerCells(private)",
    }  # fmt: skip


# -- what is refused before anything is charged ------------------------------------------------------------------------


def test_without_the_extra_it_says_so_in_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    data = in_files(people(), tmp_path / "parts")
    with pytest.raises(MissingExtra) as refused:
        db.fit(data, plan_of(DECLARED), ledger=ledger, engine="dask")
    assert str(refused.value) == "engine dask: needs Dask; pip install 'doublure[dask]'"
    plan_of(DECLARED).save(tmp_path / "plan.json")
    given = ["--plan", tmp_path / "plan.json", "--ledger", ledger.path, "-o", tmp_path / "run", "--engine", "dask"]
    made = CliRunner().invoke(app, ["fit", str(data), *map(str, given)])
    assert isinstance(made.exception, MissingExtra)
    assert [record.kind for record in ledger.entries] == ["open"]


def test_engines_that_cannot_be_are_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    for wrong in ({"engine": "spark"}, {"scheduler": "tls://here:8786"}):
        with pytest.raises(SettingError) as refused:
            db.fit(people(), plan_of(DECLARED), ledger=ledger, **wrong)
        assert refused.value.field in wrong
    other = db.plan(db.Schema.parse(DECLARED), method="dpgan", epsilon=2.0, delta=1e-4, steps=4)
    with pytest.raises(SettingError, match="holds its records"):
        db.fit(people(), other, ledger=ledger, engine="dask")
    with pytest.raises(DataError, match="this process alone"):
        db.fit(on_hands(people(), plan_of(DECLARED)), plan_of(DECLARED), ledger=ledger)
    assert [record.kind for record in ledger.entries] == ["open"]
