"""Records in partitions, on disk or with workers, keep the rules that records in one place keep (rules 2, 3, 6 and 8;
rule 11 is in ``tests/test_larger_than_memory.py`` and ``tests/test_on_workers.py``): the same is asked of every
neighbour, which moves no answer further, whatever borders cut, and noise is drawn once."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hands import in_files, on_hands

from doublure import planning as plans
from doublure.data.tables import unit_bounds
from doublure.data.tables.on_disk import TableOnDisk
from doublure.data.tables.opening import open_table
from doublure.errors import InputError, NotAsPriced
from doublure.private import partitions, whole_noise
from doublure.private.codes import CodePartition
from doublure.private.mechanism import Mechanism
from doublure.private.partitions import SequentialPartitions
from doublure.private.queries.query import Sensitivity
from doublure.private.remote import RemotePartitions
from doublure.run import record_sources, worker_tasks
from doublure.run.record_sources import OnDiskRecords
from doublure.schema import Schema


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A few records a partition."""
    monkeypatch.setattr("doublure.run.record_sources.RECORDS_AT_ONCE", 5)
    monkeypatch.setattr("doublure.private.codes.PARTITION_RECORDS", 10)
    monkeypatch.setattr("doublure.data.tables.unit_bounds.PART_RECORDS", 8)
    monkeypatch.setattr(worker_tasks, "RECORDS_AT_ONCE", 5)


class Parted:
    """A table as a run reads it in partitions of a disk."""

    def __init__(self, frame, plan, folder):
        self.frame, self.folder = frame, folder

    def load(self, schema, *, at_least):
        records = OnDiskRecords(open_table(self.frame), schema, self.folder, at_least=at_least)
        records.read()
        return records


class WithWorkers:
    """A table in files, as workers read and keep it."""

    def __init__(self, frame, plan, folder):
        self.frame, self.plan, self.folder = frame, plan, folder

    def load(self, schema, *, at_least):
        files = in_files(self.frame, Path(tempfile.mkdtemp(dir=self.folder)) / "parts")
        records = on_hands(files, self.plan)
        records._at_least = at_least
        records.read()
        return records


PLACES = {"disk": Parted, "workers": WithWorkers}


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    """Where partitions lie: what makes a table one of them."""
    return functools.partial(PLACES[request.param], folder=tmp_path)


@pytest.fixture
def disk(tmp_path):
    """Partitions of a disk alone."""
    return functools.partial(Parted, folder=tmp_path)


@functools.cache
def plan_of(lab, schema):
    if schema != lab.BOUGHT:
        return lab.counting_plan(schema)
    few = {"components": 4, "fit_steps": 5, "groups": 2}
    return plans.plan(Schema.parse(schema), method="statistics", epsilon=8.0, delta=1e-3, accountant="rdp", **few)


def count(lab, place, frame, schema, like=None, **arguments):
    plan = plan_of(lab, schema)
    return lab.counted(place(frame, plan), plan, like=like, **arguments)


def far_apart(frame, record, times, schema):
    """Return the neighbour that has one unit more, whose records lie in partitions of their own."""
    own = pd.DataFrame([{"who": "one more"} | record])
    places = range(0, len(frame), len(frame) // times)
    return pd.concat([piece for place in places for piece in (own, frame[place : place + len(frame) // times])])


def check_a_unit_moves_no_answer_further(lab, place, *, schema, records, odd=("duplicate", "extreme", "missing")):
    base = lab.people(records=records)
    kept = count(lab, place, base, schema)
    worst = []
    for name in odd:
        more = far_apart(base, lab.ODD_RECORDS[name], 4 if records > 1 else 1, schema).reset_index(drop=True)
        if schema == lab.PUBLIC:
            more = lab.with_unit(base, lab.ODD_RECORDS[name])
        found = count(lab, place, more, schema, like=kept)
        lab.assert_same_public(kept, found)
        lab.assert_within_sensitivity(kept, found)
        plan = plan_of(lab, schema)
        paid = [access.event for access in plan.training]
        for one, other, event in zip(kept.queries, found.queries, paid, strict=True):
            stated = Sensitivity.of_cells(event.tables, event.records)
            moved = (one - other).abs()
            assert float(moved.sum()) <= stated.l1
            assert float((moved**2).sum()) ** 0.5 <= stated.l2 * (1 + 1e-9)
            worst.append(float(moved.sum()) / stated.l1)
    assert max(worst) == 1.0  # and one moves as far as is paid for


@pytest.mark.parametrize("several", [False, True])
def test_a_unit_moves_no_answer_further(lab, place, several):
    schema, records = (lab.SEVERAL, 2) if several else (lab.PUBLIC, 1)
    check_a_unit_moves_no_answer_further(lab, place, schema=schema, records=records)


def test_nor_where_facts_are_bought(lab, place):
    """OwnerPartitions are those of the first table; what is counted of the second is counted by them."""
    base = lab.people()
    kept = count(lab, place, base, lab.BOUGHT)
    found = count(lab, place, lab.with_unit(base, lab.ODD_RECORDS["extreme"]), lab.BOUGHT, like=kept)
    lab.assert_same_public(kept, found)
    lab.assert_within_sensitivity(kept, found)


MUTANTS = {
    "a partition twice": (SequentialPartitions, "answers", ("self._parts()", "[*self._parts(), *self._parts()]")),
    "sums that grow": (partitions, "add_totals", ("one + other", "one + 2 * other")),
    "each unit bounded in its batch": (unit_bounds, "first_of", ("place < most", "place >= 0")),
    "units not bounded": (TableOnDisk, "column", ("cells if used is None else cells[used]", "cells")),
}


OF_WORKERS = {
    "with workers, each piece bounded by itself": (
        worker_tasks, "assign_buckets", ("own.rows[:, 0]", "(own.rows[:, 2] >> np.uint64(_PLACE_BITS))"),
    ),
    "with workers, units not bounded": (worker_tasks, "keep_used", ("own.frame.iloc[used]", "own.frame")),
    "with workers, an answer twice": (RemotePartitions, "answers", ("yield answer", "yield from (answer, answer)")),
}  # fmt: skip


@pytest.mark.parametrize("mutant", [*MUTANTS, *OF_WORKERS])
def test_partitions_that_let_a_unit_move_more_are_caught(lab, tmp_path, mutant):
    lab.plant(*(MUTANTS | OF_WORKERS)[mutant])
    place = functools.partial(Parted if mutant in MUTANTS else WithWorkers, folder=tmp_path)
    with pytest.raises((AssertionError, NotAsPriced, InputError, IndexError, ValueError)):
        check_a_unit_moves_no_answer_further(lab, place, schema=lab.SEVERAL, records=2, odd=("duplicate",))


def check_shapes_noise_and_steps_are_public(lab, place):
    """Rules 3 and 6: nobody, one unit or ten times as many leave the same trace, one draw a release, paid for first."""
    base = lab.people()
    kept = count(lab, place, base, lab.PUBLIC)
    plan = plan_of(lab, lab.PUBLIC)
    assert kept.order == ["authorise", "noise"] * len(plan.training)
    assert kept.allowed == [access.event.scale for access in plan.training]
    assert kept.public["authorised"] == list(range(1, plan.steps + 1))
    for frame in (base[:0], base[:1], lab.people(units=240)):
        found = count(lab, place, frame, lab.PUBLIC, like=kept)
        lab.assert_same_public(kept, found)
        assert [query.shape for query in found.queries] == [query.shape for query in kept.queries]


def test_shapes_noise_and_steps_are_public(lab, place):
    check_shapes_noise_and_steps_are_public(lab, place)


NOISE = "whole_noise.gaussian(total, scale=event.scale)"


@pytest.mark.parametrize(
    "planted",
    [
        (
            SequentialPartitions, "answers",
            ("self._parts()", "[part for part in self._parts() if any(map(len, part.chunks(9)))]"),
        ),
        (Mechanism, "_noised", (NOISE, f"[{NOISE} for _ in range(1 + (total.sum() > 99))][-1]")),
    ],
    ids=["empty partitions left out", "noise by how many there are"],
)  # fmt: skip
def test_traces_that_follow_from_the_records_are_caught(lab, disk, planted):
    lab.plant(*planted)
    with pytest.raises((AssertionError, StopIteration, RuntimeError, NotAsPriced, lab.REFUSED)):
        check_shapes_noise_and_steps_are_public(lab, disk)


def check_noise_is_fresh(lab, place):
    """Rule 8: equal seeds and equal records, different noise."""
    one, other = (count(lab, place, lab.people(), lab.PUBLIC, seed=1) for _ in range(2))
    for mine, theirs, before, again in zip(one.outputs, other.outputs, one.queries, other.queries, strict=True):
        if before.equal(again):  # later tables follow from earlier releases
            assert not mine.equal(theirs)


def test_noise_is_fresh(lab, place):
    check_noise_is_fresh(lab, place)


def test_noise_that_a_seed_governs_is_caught(lab, disk):
    lab.plant(whole_noise, "gaussian", ("discrete_normals(exact.size, used)", "np.ones(exact.size, np.int64)"))
    with lab.caught():
        check_noise_is_fresh(lab, disk)


def test_a_partition_shows_nothing_of_itself(lab, tmp_path):
    records = Parted(lab.people(), None, tmp_path).load(Schema.parse(lab.BOUGHT), at_least=0)
    shown = [records, records.facts(), *records.facts()._parts(), records._table]
    assert {repr(each) for each in shown} == {
        "OnDiskRecords(private)", "SequentialPartitions(private)", "TablePart(private)", "TableOnDisk(private)",
    }  # fmt: skip
    assert CodePartition.__repr__(object.__new__(CodePartition)) == "CodePartition(private)"
    assert record_sources.RECORDS_AT_ONCE == 5
