"""The noisy tables of a bundle: what the mechanism gave out, with its standard error, and nothing else."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import GateFailed, RunFolderError, SettingError
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.published import TOGETHER
from doublure.private.mechanism import Mechanism
from doublure.releasing import tables as released_tables
from doublure.releasing.tables import write_noisy_tables
from doublure.releasing.verifying import verify
from doublure.training.noisy_tables import NoisyTable, write_tables

SCHEMA = """
doublure: 1
kind: table
unit: {id: row}
units: 2000
columns:
  row: {type: id}
  age: {type: integer, bounds: [17, 90], missing: false}
  gain: {type: integer, bounds: [0, 9999], zero_inflated: true, missing: true}
  job: {type: category, values: [cook, nurse, clown], other: any, missing: ["?"]}
  income: {type: category, values: [low, high], missing: false, roles: [target]}
"""
FILES = {"one-way": 1, "two-way": 2, "three-way": 3}
PUBLISHED = {plan.TARGET, plan.COLUMNS, plan.PAIRS, plan.TREE}
LEAST = 1 + 3 + 1 + 3
"""A table of the target, a column, a pair, and what the tree has; which pairs are counted follows from the data."""


def frame(rows=2000):
    draw = np.random.default_rng(0)
    high = draw.random(rows) < 0.3
    return pd.DataFrame(
        {
            "row": np.arange(rows),
            "age": np.where(high, draw.integers(40, 91, rows), draw.integers(17, 60, rows)),
            "gain": np.where(draw.random(rows) < 0.7, 0, draw.integers(1, 9999, rows)),
            "job": draw.choice(["cook", "nurse", "clown", "?"], rows, p=[0.5, 0.3, 0.1, 0.1]),
            "income": np.where(high, "high", "low"),
        }
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a folder with a run, its ledger and its bundle, and all that the mechanism gave out for it."""
    folder, given, release = tmp_path_factory.mktemp("tables"), [], Mechanism.release

    def watched(mechanism, query, access, records, **more):
        found = release(mechanism, query, access, records, **more)
        given.append((access.purpose, np.array(found), access.event.scale))
        return found

    schema = db.Schema.parse(SCHEMA)
    planned = db.plan(
        schema, method="statistics", epsilon=2.0, delta=1e-6, accountant="rdp", components=8, starts=1, fit_steps=20
    )
    ledger = db.Ledger.create(folder / "people.ledger", dataset="people", epsilon=5, delta=1e-3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mechanism, "release", watched)
        db.fit(frame(), planned, ledger=ledger, out=folder / "run", seed=1)
    db.release(db.load(folder / "run"), folder / "bundle", n=100, seed=1, tables=True)
    return folder, given


def tables_of(folder):
    return {name: pd.read_parquet(folder / "bundle" / "tables" / f"{name}.parquet") for name in FILES}


def test_every_number_is_what_the_mechanism_gave_out(world):
    """Of a table that was counted several times it is the mean, rounded; what only looked for rows is not published."""
    folder, given = world
    tables = db.load(folder / "run").tables
    left = iter(tables)
    for purpose, numbers, scale in given:
        place = 0
        while purpose in PUBLISHED and place < len(numbers):
            table = next(left)
            times = 1 if table.standard_error == scale else round(scale**2 / (table.standard_error**2 - 1 / 12))
            copies = numbers[place : place + times * table.counts.size].reshape(times, *table.counts.shape)
            assert table.counts.tolist() == np.rint(copies.mean(0)).astype(int).tolist()
            place += times * table.counts.size
    assert next(left, None) is None
    assert {purpose for purpose, *_ in given} > PUBLISHED
    for size, table in zip(FILES.values(), tables_of(folder).values(), strict=True):
        own = [each for each in tables if each.counts.ndim == size]
        assert table["count"].tolist() == np.concatenate([each.counts.ravel() for each in own]).tolist()
        assert set(table["noise_sd"]) == {each.standard_error for each in own}
        assert set(table.columns) - {f"{what}_{axis}" for what in ("column", "cell") for axis in (1, 2, 3)} == {
            *("table", "count", "noise_sd"),
        }
    assert min(table.counts.min() for table in tables) < 0  # noise as it was drawn


def test_every_name_is_public(world):
    folder, _ = world
    known = {"cook", "nurse", "clown", "any", "(missing)", "low", "high", "(none)", "gain", "job", "gain + job"}
    for size, table in zip(FILES.values(), tables_of(folder).values(), strict=True):
        for axis in range(1, size + 1):
            assert set(table[f"column_{axis}"]) <= {"age", "gain", "job", "income", TOGETHER}
            for cell in table[f"cell_{axis}"].unique():
                for part in cell.split(" | "):
                    assert part in known or all(0 <= float(end) <= 9999 for end in part.split("..")), part


def test_a_table_reads_as_a_cross_tabulation(world):
    """It is near the real counts, as near as its standard error says."""
    folder, _ = world
    table = tables_of(folder)["one-way"]
    jobs = table[table["column_1"] == "job"].set_index("cell_1")
    real = frame()["job"].replace("?", "(missing)").value_counts()
    for job, count in real.items():
        assert abs(jobs.loc[job, "count"] - count) < 6 * jobs.loc[job, "noise_sd"]
    ages = table[table["column_1"] == "age"]
    for name, count, error in ages[["cell_1", "count", "noise_sd"]].itertuples(index=False):
        low, high = (float(end) for end in (name.split("..") * 2)[:2])
        assert abs(count - frame()["age"].between(low, high).sum()) < 6 * error
    pairs = tables_of(folder)["three-way"]
    assert set(pairs["column_3"]) == {"income"}  # within the target
    for _, own in pairs.groupby("table"):
        error = 6 * own["noise_sd"].iloc[0] * np.sqrt(len(own) / 2)
        assert abs(own.loc[own["cell_3"] == "high", "count"].sum() - (frame()["income"] == "high").sum()) < error


def test_card_dictionary_and_ledger_know_them(world):
    folder, _ = world
    card = json.loads((folder / "bundle" / "card.json").read_text())
    listed = {entry["path"]: entry["rows"] for entry in card["files"]}
    cells = {f"tables/{name}.parquet": len(table) for name, table in tables_of(folder).items()}
    assert listed.items() >= cells.items()
    assert any("tables/" in line and "negative" in line for line in card["limits"])
    words = json.loads((folder / "bundle" / "dictionary.json").read_text())["tables"]
    assert {entry["path"]: entry["cells"] for entry in words["files"]} == cells
    assert "tables/one-way.parquet" in (folder / "bundle" / "card.html").read_text()
    assert verify(folder / "bundle", ledger=folder / "people.ledger")["files"] == 10
    kept = pq.read_schema(folder / "bundle" / "tables" / "one-way.parquet").metadata
    assert kept[b"guarantee"].decode() == card["guarantee"]["sentence"]


def test_they_cost_nothing(world):
    """The ledger's total is what the fit cost, and the card's claim is the run's."""
    folder, _ = world
    assert db.Ledger.open(folder / "people.ledger").remaining.epsilon == pytest.approx(3.0)
    card = json.loads((folder / "bundle" / "card.json").read_text())
    assert card["guarantee"] == db.load(folder / "run").guarantee.to_json()
    assert len(card["touches"]) == len(world[1]) == 10


def test_a_bundle_that_calls_the_noise_a_standard_error_is_verified(world, tmp_path, monkeypatch):
    """So earlier versions called it; what stands in the column is the same."""
    told = {"standard_error" if name == "noise_sd" else name: words for name, words in released_tables._COLUMNS.items()}
    with monkeypatch.context() as earlier:
        earlier.setattr(released_tables, "_COLUMNS", told)
        earlier.setattr(released_tables, "_NOISE", "standard_error")
        ledger = shutil.copy(world[0] / "people.ledger", tmp_path)
        db.release(db.load(world[0] / "run"), tmp_path / "bundle", n=10, tables=True, ledger=ledger)
    assert "standard_error" in pd.read_parquet(tmp_path / "bundle" / "tables" / "one-way.parquet").columns
    package = json.loads((tmp_path / "bundle" / "datapackage.json").read_text())
    assert any("standard_error" in str(entry.get("schema")) for entry in package["resources"])
    verify(tmp_path / "bundle")


@pytest.mark.parametrize("how", ["flip", "remove", "add", "link", "folder elsewhere"])
def test_a_change_to_them_is_found(world, tmp_path, how):
    shutil.copytree(world[0] / "bundle", tmp_path / "bundle")
    tables = tmp_path / "bundle" / "tables"
    path = tables / "one-way.parquet"
    content = path.read_bytes()
    if how == "flip":
        path.write_bytes(content[:-10] + bytes([content[-10] ^ 1]) + content[-9:])
    elif how == "remove":
        path.unlink()
    elif how == "add":
        (tables / "more.parquet").write_bytes(content)
    elif how == "link":
        path.rename(tmp_path / "one-way.parquet")
        path.symlink_to(tmp_path / "one-way.parquet")
    else:
        tables.rename(tmp_path / "tables")
        tables.symlink_to(tmp_path / "tables")
    with pytest.raises(GateFailed, match="tables"):
        verify(tmp_path / "bundle")


def test_a_folder_of_tables_that_no_card_lists_is_found(world, tmp_path):
    db.release(
        db.load(world[0] / "run"), tmp_path / "bundle", n=10, ledger=shutil.copy(world[0] / "people.ledger", tmp_path)
    )
    assert not (tmp_path / "bundle" / "tables").exists()
    verify(tmp_path / "bundle")
    (tmp_path / "bundle" / "tables").mkdir()
    with pytest.raises(GateFailed, match="not on its card"):
        verify(tmp_path / "bundle")


def same(one, other):
    return all(
        (a.columns, a.cells, a.standard_error) == (b.columns, b.cells, b.standard_error)
        and np.array_equal(a.counts, b.counts)
        for a, b in zip(one, other, strict=True)
    )


def test_a_saved_copy_has_them_too(world, tmp_path):
    syn = db.load(world[0] / "run")
    syn.save(tmp_path / "copy")
    assert same(syn.tables, db.load(tmp_path / "copy").tables)
    assert len(syn.tables) >= LEAST


def test_a_run_in_memory_has_them_too(tmp_path):
    planned = db.plan(
        db.Schema.parse(SCHEMA),
        method="statistics",
        epsilon=2.0,
        delta=1e-6,
        accountant="rdp",
        components=2,
        fit_steps=2,
    )
    ledger = db.Ledger.create(tmp_path / "people.ledger", dataset="people", epsilon=5, delta=1e-3)
    syn = db.fit(frame(), planned, ledger=ledger)
    assert len(syn.tables) >= LEAST
    db.release(syn, tmp_path / "bundle", n=5, tables=True)


def test_tables_that_were_changed_are_refused(world, tmp_path):
    shutil.copytree(world[0] / "run", tmp_path / "run")
    path = tmp_path / "run" / "tables.safetensors"
    content = path.read_bytes()
    for changed in (content[:-1] + bytes([content[-1] ^ 1]), b"", None):
        path.unlink()
        if changed is not None:
            path.write_bytes(changed)
        with pytest.raises(RunFolderError, match="missing or damaged"):
            db.load(tmp_path / "run").tables  # noqa: B018
        path.write_bytes(content)
    assert len(db.load(tmp_path / "run").sample(3)) == 3  # who asks for none reads none


def test_tables_of_another_making_are_refused_though_run_json_names_them(world, tmp_path):
    """Exact counts in their place would be published: the ledger knows the generator, and it names its tables."""
    run = tmp_path / "run"
    shutil.copytree(world[0] / "run", run)
    said = json.loads((run / "run.json").read_text())
    false = tuple(replace(table, counts=table.counts + 1) for table in db.load(run).tables)
    for told in ({"tables_sha256": write_tables(run / "tables.safetensors", false)}, {"tables_sha256": None}):
        (run / "run.json").write_text(json.dumps(said | told))
        with pytest.raises(RunFolderError, match="was made with other noisy tables"):
            db.load(run)


def test_a_method_that_hands_out_none_is_refused_in_one_line(small, tmp_path):
    run, _ = small.copies(tmp_path)
    assert db.load(run).tables == ()
    with pytest.raises(SettingError, match="are none") as caught:
        db.release(db.load(run), tmp_path / "bundle", n=5, tables=True)
    assert caught.value.field == "tables"
    assert not (tmp_path / "bundle").exists()


def test_counts_have_the_shape_of_their_cells():
    with pytest.raises(SettingError, match="shape"):
        NoisyTable(columns=("a",), cells=(("x", "y"),), counts=np.zeros(3, dtype=np.int64), standard_error=1.0)


def test_many_tables_are_written_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("doublure.releasing.tables._CHUNK_ROWS", 5)
    tables = [
        NoisyTable(
            columns=(f"c{number}", "sex"),
            cells=(("1..2", "3"), ("f", "m")),
            counts=np.arange(4, dtype=np.int64).reshape(2, 2) - number,
            standard_error=2.5,
        )
        for number in range(5)
    ]
    assert write_noisy_tables(tmp_path, tables, {"watermark": "Artificial data"}) == {"tables/two-way.parquet": 20}
    found = pd.read_parquet(tmp_path / "tables" / "two-way.parquet")
    assert found["table"].tolist() == np.repeat(np.arange(5), 4).tolist()
    last = found[found["table"] == 4]
    assert last[["column_1", "cell_1", "cell_2", "count"]].astype(str).to_numpy().tolist() == [
        ["c4", "1..2", "f", "-4"], ["c4", "1..2", "m", "-3"], ["c4", "3", "f", "-2"], ["c4", "3", "m", "-1"],
    ]  # fmt: skip


def test_the_command_publishes_them(world, tmp_path, capfd):
    ledger = shutil.copy(world[0] / "people.ledger", tmp_path)
    words = ("release", world[0] / "run", "--tables", "-n", 20, "-o", tmp_path / "bundle", "--ledger", ledger, "--json")
    assert run_guarded(app, [str(word) for word in words]) == 0
    files = json.loads(capfd.readouterr().out)["result"]["card"]["files"]
    assert {f"tables/{name}.parquet" for name in FILES} < {entry["path"] for entry in files}
    assert verify(tmp_path / "bundle", ledger=ledger)["ledger"]
