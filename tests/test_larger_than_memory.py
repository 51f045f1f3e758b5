"""Fits that read their records in partitions: equal bit for bit to those that hold them, given the same noise."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from killed import ended, started
from parted import BOTH, DECLARED, LEARNED, SCHEMAS, SEVERAL, check_equal, fitted, people, plan_of
from planting import plant
from tiers import exhaustive
from typer.testing import CliRunner

import doublure as db
from doublure.cli.main import app
from doublure.data.tables.on_disk import TableOnDisk, TablePart
from doublure.errors import DataError, Interrupted, SettingError
from doublure.ledger import Ledger
from doublure.planning import machine
from doublure.planning.machine import parse_bytes
from doublure.private.codes import ColumnCodes
from doublure.private.partitions import SequentialPartitions
from doublure.run.record_sources import OnDiskRecords
from doublure.support.number_files import NumberFile

RULED = {  # out may change, and how often each of its values is there is learned
    way: text.replace("kind: table", "kind: table\nmisfit: coerce").rstrip().removesuffix("}")
    + ", roles: [condition], shares: {learn: 1.0}}\nconstraints:\n"
    + '  - combinations: {columns: [job, out], rows: [[cook, "no"], [nurse, "yes"], [Other, "no"], [Other, "yes"]]}\n'
    for way, text in {"ruled": DECLARED, "ruled of several": SEVERAL}.items()
}
ORDERED = DECLARED.replace(
    "  out:", "  till: {type: date, bounds: [2000-01-01, 2031-01-01], missing: false}\n  out:"
) + ("constraints:\n  - at_most: [seen, till]\n")

WITHIN_OTHERS = frozenset({"learned", "several records", "ruled"})
"""What these ask, others ask at once: \"learned of several\", and \"ruled of several\"."""


def cases(schemas):
    return [pytest.param(name, marks=exhaustive) if name in WITHIN_OTHERS else name for name in schemas]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many partitions of few records, so that each border of them is met."""
    torch.set_num_threads(1)
    monkeypatch.setattr("doublure.run.record_sources.RECORDS_AT_ONCE", 37)
    monkeypatch.setattr("doublure.private.codes.PARTITION_RECORDS", 100)
    monkeypatch.setattr("doublure.data.tables.unit_bounds.PART_RECORDS", 64)


HELD = {}


def check_partitions_change_nothing(patch, folder, schema, data=None, rows=500):
    frame = people(rows)
    if (schema, rows) not in HELD:
        held = fitted(patch, frame, schema, folder / "held")
        HELD[schema, rows] = held, json.loads((folder / "held" / "run" / "executed.json").read_text())
    held, executed = HELD[schema, rows]
    parted = fitted(patch, frame if data is None else data(frame), schema, folder / "parted", memory="2GB")
    check_equal(held, parted)
    assert executed == json.loads((folder / "parted" / "run" / "executed.json").read_text())
    assert [path.name for path in (folder / "parted" / "run" / "internal").iterdir()] == []


@pytest.mark.parametrize("schema", cases([*SCHEMAS, *RULED, "ordered"]))
def test_partitions_change_nothing(monkeypatch, tmp_path, schema):
    check_partitions_change_nothing(monkeypatch, tmp_path, {**SCHEMAS, **RULED, "ordered": ORDERED}[schema])


@pytest.mark.parametrize("schema", RULED)
def test_records_that_break_a_rule_are_refused_before_anything_is_learned(tmp_path, schema):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    refusing = RULED[schema].replace("misfit: coerce", "misfit: refuse")
    with pytest.raises(DataError, match="break a rule: "):
        db.fit(people(), plan_of(refusing), ledger=ledger, memory="2GB", seed=0)
    assert ledger.spent.epsilon == 0


def in_parts(folder, ending):
    def written(frame):
        folder.mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(frame)), 4)):
            own, path = frame.iloc[rows], folder / f"part-{number}{ending}"
            own.to_parquet(path, index=False) if ending == ".parquet" else own.to_csv(path, index=False)
        return folder

    return written


def reader(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=90)))


@pytest.mark.parametrize("way", ["parquet", "csv", "pattern", "stream"])
def test_nor_does_the_container(monkeypatch, tmp_path, way):
    made = {
        "parquet": in_parts(tmp_path / "parts", ".parquet"),
        "csv": in_parts(tmp_path / "parts", ".csv.gz"),
        "pattern": lambda frame: str(in_parts(tmp_path / "parts", ".csv")(frame) / "part-?.csv"),
        "stream": reader,
    }
    check_partitions_change_nothing(monkeypatch, tmp_path, BOTH, made[way])


MUTANTS = {
    "a record that is lost": (OnDiskRecords, "_of_cells", ("part.content", "part.content[1:]")),
    "a partition twice": (
        SequentialPartitions, "answers", ("self._parts()", "[*self._parts(), *list(self._parts())[:1]]"),
    ),
    "units not bounded": (TableOnDisk, "column", ("cells if used is None else cells[used]", "cells")),
    "units counted in each part": (
        TableOnDisk, "parts", ("np.count_nonzero(self._first[stretch])", "np.count_nonzero(self._used[stretch])"),
    ),
    "labels by their part": (
        TableOnDisk, "_add", ("known.setdefault(text, len(known))", "known.setdefault(text, len(known)) and 1"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_partitions_that_change_something_are_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    with pytest.raises((AssertionError, SettingError)):
        check_partitions_change_nothing(monkeypatch, tmp_path, BOTH)


def test_facts_of_records_as_they_came_are_caught(monkeypatch, tmp_path):
    plant(monkeypatch, TablePart, "cells", ("self._table.changed", "False"))
    with pytest.raises(AssertionError):
        check_partitions_change_nothing(monkeypatch, tmp_path, RULED["ruled of several"])


def test_a_table_without_records(monkeypatch, tmp_path):
    for schema in (DECLARED, BOTH):
        coerced = schema.replace("kind: table", "kind: table\nmisfit: coerce")
        check_partitions_change_nothing(monkeypatch, tmp_path / str(len(schema)), coerced, rows=0)
        ledger = Ledger.create(tmp_path / f"ledger {len(schema)}", dataset="nobody", epsilon=1000.0, delta=0.5)
        with pytest.raises(DataError, match="fewer than 2"):
            db.fit(people()[:1], plan_of(schema), ledger=ledger, memory="2GB", seed=0)
        assert [record.body["status"] for record in ledger.entries if record.kind == "close"] == ["no-noise-drawn"]


# -- rule 11: charged before it is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", cases(SCHEMAS))
def test_the_charge_is_on_disk_before_the_first_batch_is_read(tmp_path, schema):
    ledger, charged = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5), []
    table = pa.Table.from_pandas(people(), preserve_index=False)

    def batches():
        for batch in table.to_batches(max_chunksize=100):
            charged.append([record.kind for record in Ledger.open(tmp_path / "ledger").entries])
            yield batch

    given = pa.RecordBatchReader.from_batches(table.schema, batches())
    db.fit(given, plan_of(SCHEMAS[schema]), ledger=ledger, memory="2GB", seed=0)
    assert charged == [["open", "reserve"]] * 5  # and no noise was drawn before all was read


def test_a_cell_that_does_not_fit_costs_nothing_and_is_not_named(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    frame = people()
    frame["pay"] = frame["pay"].astype(str)
    frame.loc[400, "pay"] = "Kiruna"
    with pytest.raises(DataError, match="no real") as refused:
        db.fit(frame, plan_of(DECLARED), ledger=ledger, out=tmp_path / "run", memory="2GB", seed=0)
    assert "Kiruna" not in str(refused.value)
    assert ledger.spent.epsilon == 0
    assert not (tmp_path / "run").exists()


# -- what stays, and until when ----------------------------------------------------------------------------------------


def stopped(patch, folder, at=3, schema=SEVERAL):
    """Stop a fit by Ctrl-C in its n-th release, before its noise is drawn, and return its ledger."""
    folder.mkdir(exist_ok=True)
    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    asked, ask = [], SequentialPartitions.ask

    def interrupted(places, query, **named):
        asked.append(query)
        if len(asked) == at:
            raise KeyboardInterrupt
        return ask(places, query, **named)

    with patch.context() as inner:
        inner.setattr(SequentialPartitions, "ask", interrupted)
        with pytest.raises(Interrupted, match="--resume"):
            db.fit(people(), plan_of(schema), ledger=ledger, out=folder / "run", memory="2GB", seed=1)
    return ledger


def test_a_stopped_run_goes_on_with_its_codes_and_reads_no_data(monkeypatch, tmp_path):
    ledger = stopped(monkeypatch, tmp_path)
    codes = tmp_path / "run" / "internal" / "codes"
    assert codes.stat().st_mode & 0o777 == 0o600
    kept = ColumnCodes.open(codes)
    assert kept is not None
    table = pa.Table.from_pandas(people(), preserve_index=False)

    def unread():
        raise AssertionError("it is read again")
        yield

    given = pa.RecordBatchReader.from_batches(table.schema, unread())
    for memory in ("2GB",):
        syn = db.fit(given, plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", resume=True, memory=memory)
    assert len(syn.sample(5)) == 5
    assert not codes.exists()


def test_codes_that_are_damaged_are_read_again(monkeypatch, tmp_path):
    ledger = stopped(monkeypatch, tmp_path)
    codes = tmp_path / "run" / "internal" / "codes"
    codes.write_bytes(codes.read_bytes()[:-3])
    again = db.fit(people(), plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", resume=True, memory="2GB")
    assert len(again.sample(5)) == 5
    assert not codes.exists()


def test_other_records_are_refused_where_codes_are_gone(monkeypatch, tmp_path):
    ledger = stopped(monkeypatch, tmp_path)
    (tmp_path / "run" / "internal" / "codes").unlink()
    with pytest.raises(db.errors.RunFolderError, match="other records"):
        db.fit(people()[::-1], plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", resume=True, memory="2GB")
    again = db.fit(people(), plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", resume=True, memory="2GB")
    assert len(again.sample(5)) == 5  # codes of other records have not stayed


def test_a_run_that_ends_for_good_leaves_no_codes(monkeypatch, tmp_path):
    ledger = stopped(monkeypatch, tmp_path)
    with monkeypatch.context() as inner:
        inner.setattr("doublure.private.mechanism.Mechanism._noised", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            db.fit(people(), plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", resume=True, memory="2GB")
    with pytest.raises(db.errors.LostRun):
        db.fit(people(), plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", resume=True, memory="2GB")
    assert not (tmp_path / "run" / "internal" / "codes").exists()


def test_cells_have_no_name_so_that_nothing_is_left_of_them_after_a_kill(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    ask = SequentialPartitions.ask

    def dies(places, query, **named):
        ask(places, query, **named)
        held = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
        (tmp_path / "held").write_text("\n".join(held))
        os.kill(os.getpid(), signal.SIGKILL)

    def fits():
        SequentialPartitions.ask = dies
        db.fit(people(), plan_of(BOTH), ledger=ledger, out=tmp_path / "run", memory="2GB", seed=1)

    assert ended(started(fits)) == -signal.SIGKILL
    spilled = [line for line in (tmp_path / "held").read_text().splitlines() if str(tmp_path / "run/internal") in line]
    assert spilled  # it was there
    assert all("deleted" in line for line in spilled)
    assert [*(tmp_path / "run" / "internal").iterdir()] == []


def test_a_full_disk_is_named_and_costs_nothing(monkeypatch, tmp_path):
    def full(*given):
        raise OSError(28, "No space left on device")

    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(db.errors.InputError, match="free some space"):
        db.fit(people(), plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run", memory="2GB", seed=1)
    assert ledger.spent.epsilon == 0


# -- how much is held --------------------------------------------------------------------------------------------------


def test_memory_is_an_amount():
    assert [parse_bytes(each) for each in ("2GB", "1.5 GiB", "500mb", 7, "100", None)] == [
        2 * 10**9, 3 * 2**29, 500 * 10**6, 7, 100, None,
    ]  # fmt: skip
    for wrong in ("", "two", "-1GB", "0", "1PB", True, -5):
        with pytest.raises(SettingError, match="no amount"):
            parse_bytes(wrong)


def test_too_little_memory_is_refused_before_anything_is_charged(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    with pytest.raises(SettingError, match="would need about") as refused:
        db.fit(people(), plan_of(DECLARED), ledger=ledger, memory="100MB")
    assert refused.value.field == "memory"
    other = db.plan(db.Schema.parse(DECLARED), method="guided", epsilon=2.0, delta=1e-4, accountant="rdp")
    with pytest.raises(SettingError, match="plan with statistics"):
        db.fit(people(), other, ledger=ledger, memory="100MB")
    assert [record.kind for record in ledger.entries] == ["open"]


RELATED = """
doublure: 1
kind: relational
unit: {name: person}
units: 400
tables:
  people:
    key: nr
    columns: {nr: {type: id}, sex: {type: category, values: [f, m], missing: false}}
  visits:
    parent: people
    foreign_key: nr
    max_children: 3
    columns: {nr: {type: id}, ward: {type: category, values: [A, B], missing: false}}
"""
METERS = """
doublure: 1
kind: series
units: 400
series: {length: 4}
channels: {load: {type: real, bounds: [0, 10], precision: 1, missing: false}}
"""


@pytest.mark.parametrize(
    ("text", "remedy"), [(RELATED, "give more, or keep the tables in a database, "), (METERS, "give more")]
)
def test_related_tables_and_series_are_held_or_refused_before_anything_is_charged(tmp_path, text, remedy):
    rng = np.random.default_rng(0)
    if text is RELATED:
        people = pd.DataFrame({"nr": range(400), "sex": rng.choice(["f", "m"], 400)})
        visits = pd.DataFrame({"nr": rng.integers(0, 400, 600), "ward": rng.choice(["A", "B"], 600)})
        data = {"people": people, "visits": visits}
    else:
        data = {"values": rng.random((400, 4, 1)) * 10}
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=2.0, delta=1e-4, accountant="rdp")
    with pytest.raises(
        SettingError, match=r"a run with statistics would need about [0-9.]+ GB, and may have"
    ) as refused:
        db.fit(data, plan, ledger=ledger, memory="100MB")
    assert refused.value.field == "memory"
    assert (refused.value.remedy or "").startswith(remedy)
    assert "plan with statistics" not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [record.kind for record in ledger.entries] == ["open"]
    assert len(db.fit(data, plan, ledger=ledger, memory="4GB", seed=0).draw(5)) == 5


def test_related_tables_beyond_this_machine_are_planned_for_a_database_and_not_fitted_from_files(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "memory_bytes", lambda: 10**9)
    many = RELATED.replace("units: 400", "units: 90_000_000".replace("_", ""))
    plan = db.plan(db.Schema.parse(many), epsilon=2.0, delta=1e-10)
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    with pytest.raises(SettingError, match="this machine has 1 GB; keep the tables in a database, ") as refused:
        db.fit(tmp_path / "nothing", plan, ledger=ledger)
    assert refused.value.field == "memory"
    assert [record.kind for record in ledger.entries] == ["open"]


def test_a_method_that_holds_its_records_fits_in_memory_that_is_enough(tmp_path, monkeypatch):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    monkeypatch.setattr(OnDiskRecords, "read", lambda records: pytest.fail("they are not held"))
    other = db.plan(
        db.Schema.parse(DECLARED), method="guided", epsilon=2.0, delta=1e-4, accountant="rdp", components=4, fit_steps=5
    )
    assert len(db.fit(people(), other, ledger=ledger, memory="4GB", seed=0).sample(2)) == 2


def test_what_does_not_fit_in_the_machine_is_read_in_partitions(monkeypatch):
    from doublure.methods import registry
    from doublure.planning import machine

    many = db.Schema.parse(DECLARED.replace("units: 300", "units: 2000000000"))
    plan = db.plan(many, method="statistics", epsilon=20.0, delta=1e-12, accountant="rdp")
    chosen = registry.method("statistics")
    monkeypatch.setattr(machine, "memory_bytes", lambda: 4 * 10**9)
    placement = machine.choose_placement(chosen, plan.schema, plan.settings)
    assert placement is machine.RecordPlacement.IN_PARTITIONS
    assert machine.choose_placement(chosen, plan_of(DECLARED).schema, plan.settings) is machine.RecordPlacement.HELD
    large = db.Schema.parse(DECLARED.replace("300", "50000000"))
    drawn = db.plan(large, method="dpgan", epsilon=2.0, delta=1e-12, accountant="rdp")
    placement = machine.choose_placement(registry.method("dpgan"), drawn.schema, drawn.settings)
    assert placement is machine.RecordPlacement.ON_DISK
    monkeypatch.setattr(machine, "memory_bytes", lambda: 7 * 10**8)
    with pytest.raises(SettingError, match="this machine has"):
        machine.refuse_too_large(chosen, plan.schema, plan.settings)


def test_few_records_are_in_hand_at_a_time(monkeypatch, tmp_path):
    most, get, add = [], NumberFile.get, NumberFile.add
    monkeypatch.setattr(
        NumberFile, "get", lambda file, start, count, kind: most.append(count) or get(file, start, count, kind)
    )
    monkeypatch.setattr(NumberFile, "add", lambda file, numbers: most.append(len(numbers)) or add(file, numbers))
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    db.fit(people(1500), plan_of(LEARNED), ledger=ledger, memory="2GB", seed=0)
    assert max(most) == 37


def test_the_command_reads_a_folder_in_partitions(tmp_path, monkeypatch):
    read, begun = [], OnDiskRecords.read
    monkeypatch.setattr(OnDiskRecords, "read", lambda records: read.append(1) or begun(records))
    plan_of(SEVERAL).save(tmp_path / "plan.json")
    Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    data, run = in_parts(tmp_path / "parts", ".parquet")(people()), tmp_path / "run"
    given = ["--plan", tmp_path / "plan.json", "--ledger", tmp_path / "ledger", "-o", run, "--memory", "2GB"]
    made = CliRunner().invoke(app, ["fit", str(data), *map(str, given)])
    assert made.exit_code == 0, made.output
    assert read == [1]
    assert len(db.load(run).sample(7)) == 7


def test_a_workbook_is_not_read_in_parts(tmp_path):
    """Its library holds all of it: memory would not hold, and the ledger would be charged."""
    pytest.importorskip("python_calamine", reason="the extra files is not installed")
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra files is not installed")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        book.add_worksheet().write_row(0, 0, list(db.Schema.parse(DECLARED).columns))
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=99.0, delta=1e-3)
    with pytest.raises(DataError, match=r"^a.xlsx: is read whole, and is to be read in parts; export it as CSV"):
        db.fit(tmp_path / "a.xlsx", plan_of(DECLARED), ledger=ledger, memory="2GB", seed=0)
    assert ledger.spent.epsilon == 0
