"""Fits that draw lots from records on disk: equal bit for bit to those that hold them, given equal coins and noise."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from keyed import Keyed
from parted import BOTH, DECLARED, SEVERAL, people, replayed
from PIL import Image
from planting import plant

import doublure as db
from doublure.data.images.records import ImagesOnDisk
from doublure.data.images.sources import ImageSource
from doublure.data.tables.unit_bounds import UnitBounds
from doublure.encode.image import ImageEncoder
from doublure.errors import Interrupted, RunFolderError, SettingError
from doublure.ledger import Ledger
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.records import PrivateRecords
from doublure.private.row_codes import RowCodes
from doublure.run.record_sources import OnDiskRecords
from doublure.support import row_files
from doublure.support.number_files import NumberFile
from doublure.support.row_files import RowFile
from doublure.training.job import encoded_records

MISSING = SEVERAL.replace("kind: table", "kind: table\nmisfit: coerce")
SCHEMAS = {"declared": DECLARED, "several records": MISSING, "learned of several": BOTH}
PICTURES = """
doublure: 1
kind: images
units: 40
misfit: coerce
images: {shape: [8, 8, 1]}
label: {values: [0, 1, 2], roles: [condition]}
"""
OF_PEOPLE = PICTURES.replace("units: 40", "units: 15\nunit: {name: person, id: who, max_records: 2}")
TRAINED = {
    "dpgan": {"steps": 6, "lot_size": 12, "noise_width": 4, "generator_batch": 8},
    "statistics": {"fit_steps": 2, "batch": 4, "features": 64},
}
SMALL = {"table": {"width": 8, "critic_width": 8}, "images": {"channels": [8, 4], "critic_channels": [4, 8]}}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Many batches of few records, and pages that are let go of all the time."""
    torch.set_num_threads(1)
    monkeypatch.setattr("doublure.run.record_sources.RECORDS_AT_ONCE", 37)
    monkeypatch.setattr("doublure.data.images.arrays._BLOCK_BYTES", 700)
    monkeypatch.setattr("doublure.data.tables.unit_bounds.PART_RECORDS", 64)
    monkeypatch.setattr(row_files, "_LET_GO", 10_000)
    monkeypatch.setattr(row_files, "_MOVED", 200)


def fitted(patch, data, schema, folder, method="dpgan", **arguments):
    """Fit with coins, pairing and noise that follow from a unit's number and the step."""
    folder.mkdir(parents=True, exist_ok=True)
    kind, budget = schema.split("kind: ")[1].split()[0], {"epsilon": 20.0, "delta": 1e-4, "accountant": "rdp"}
    own = {**TRAINED[method], **(SMALL[kind] if method == "dpgan" else {})}
    plan = db.plan(db.Schema.parse(schema), method=method, **budget, **own)
    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    with patch.context() as inner:
        Keyed().install(inner)
        replayed(inner)  # what is bought
        return db.fit(data, plan, ledger=ledger, out=folder / "run", seed=1, **arguments)


def check_equal(one, other, folder):
    assert one.schema.to_yaml() == other.schema.to_yaml()
    mine, theirs = one.generator.state_dict(), other.generator.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    ran = [json.loads((folder / way / "run" / "executed.json").read_text()) for way in ("held", "drawn")]
    assert ran[0] == ran[1]
    assert [path.name for path in (folder / "drawn" / "run" / "internal").iterdir()] == ["checkpoint.safetensors"]


def check_disk_changes_nothing(patch, folder, schema, data, method="dpgan", given=None):
    read = []
    honest = RowFile.__getitem__
    patch.setattr(RowFile, "__getitem__", lambda rows, wanted: read.append(1) or honest(rows, wanted))
    held = fitted(patch, data, schema, folder / "held", method)
    assert not read
    drawn = fitted(patch, data if given is None else given(data), schema, folder / "drawn", method, memory="4GB")
    assert len(read) > 3  # it was not held after all
    check_equal(held, drawn, folder)


def stream(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=90)))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_lots_of_a_table_on_disk_are_those_in_memory(monkeypatch, tmp_path, schema):
    check_disk_changes_nothing(monkeypatch, tmp_path, SCHEMAS[schema], people(), given=stream)


def pictures(units=15):
    draw = np.random.default_rng(4)
    labels = draw.integers(0, 3, 40)
    images = (draw.random((40, 8, 8, 1)) * 80 + 80 * labels[:, None, None, None]).astype(np.uint8)
    return {"images": images, "labels": labels, "who": draw.integers(0, units, 40)}


def as_npz(folder, packed=False):
    write = np.savez_compressed if packed else np.savez
    write(folder / "set.npz", **pictures())
    return folder / "set.npz"


def as_idx(folder):
    made = pictures()
    for name, values in (("images-idx3", made["images"][..., 0]), ("labels-idx1", made["labels"].astype(np.uint8))):
        sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
        with gzip.open(folder / f"train-{name}-ubyte.gz", "wb") as file:
            file.write(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes())
    return folder / "train-images-idx3-ubyte.gz"


def as_folder(folder):
    made = pictures()
    for place, (image, label) in enumerate(zip(made["images"], made["labels"], strict=True)):
        own = folder / "set" / str(label)
        own.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[..., 0]).save(own / f"{place:03}.png")
    (folder / "set" / "1" / "004.png").write_bytes(b"no picture")  # left out, as the schema says
    return folder / "set"


WAYS = {
    "NPZ": (as_npz, PICTURES, "dpgan"),
    "NPZ of people": (as_npz, OF_PEOPLE, "dpgan"),
    "IDX": (as_idx, PICTURES, "dpgan"),
    "a folder": (as_folder, PICTURES, "dpgan"),
    "sums of a folder": (as_folder, PICTURES, "statistics"),
}


@pytest.mark.parametrize("way", WAYS)
def test_lots_of_images_on_disk_are_those_in_memory(monkeypatch, tmp_path, way):
    made, schema, method = WAYS[way]
    check_disk_changes_nothing(monkeypatch, tmp_path, schema, made(tmp_path), method)


PLACES = "wanted if self._places is None else self._places[wanted]"
MUTANTS = {
    "units as their records come": (PrivateRecords, "_rows", (PLACES, "wanted")),
    "units by another's record": (UnitBounds, "bounded", ("np.cumsum(first[near]) - 1", "0 * np.cumsum(first[near])")),
    "a record that is lost": (OnDiskRecords, "_of_cells", ("part.content", "part.content[::-1]")),
}  # fmt: skip
OF_IMAGES = {
    "images that others take the place of": (RowFile, "keep", ("self[places[first:first + step]]", "self[:step]")),
    "labels of others": (
        ImagesOnDisk,
        "take",
        ("_beside(self, rows)", "_beside(self, slice(0, len(self.pixels[rows])))"),
    ),
}


@pytest.mark.parametrize("mutant", [*MUTANTS, *OF_IMAGES])
def test_a_disk_that_changes_something_is_caught(monkeypatch, tmp_path, mutant):
    of_tables = mutant in MUTANTS
    plant(monkeypatch, *(MUTANTS | OF_IMAGES)[mutant])
    schema, data = (MISSING, people()) if of_tables else (PICTURES, as_folder(tmp_path))
    with pytest.raises((AssertionError, SettingError, IndexError, ValueError)):
        check_disk_changes_nothing(monkeypatch, tmp_path, schema, data)


# -- rule 11: charged before it is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["table", "images"])
def test_the_charge_is_on_disk_before_the_first_record_is_read(monkeypatch, tmp_path, kind):
    charged = []

    def noted(blocks):
        for block in blocks:
            charged.append([record.kind for record in Ledger.open(tmp_path / "fit" / "ledger").entries])
            yield block

    if kind == "table":
        table = pa.Table.from_pandas(people(), preserve_index=False)
        data = pa.RecordBatchReader.from_batches(table.schema, noted(table.to_batches(max_chunksize=100)))
        fitted(monkeypatch, data, DECLARED, tmp_path / "fit", memory="4GB")
    else:
        honest = ImageSource._all_blocks
        monkeypatch.setattr(ImageSource, "_all_blocks", lambda source, reader: noted(honest(source, reader)))
        fitted(monkeypatch, as_npz(tmp_path), PICTURES, tmp_path / "fit", memory="4GB")
    assert len(charged) >= 4
    assert all(kinds == ["open", "reserve"] for kinds in charged)  # and no noise was drawn before all was read


# -- what stays, and until when ----------------------------------------------------------------------------------------


def stopped(patch, folder, data):
    """Stop a fit by Ctrl-C in its fourth step, and return its ledger and plan."""
    plan = db.plan(
        db.Schema.parse(MISSING), method="dpgan", epsilon=20.0, delta=1e-4, accountant="rdp",
        **TRAINED["dpgan"], **SMALL["table"],
    )  # fmt: skip
    ledger, asked, answer = (
        Ledger.create(folder / "ledger", dataset="people", epsilon=1000.0, delta=0.5),
        [],
        (CriticGradients.answer),
    )

    def interrupted(query, records, **named):
        asked.append(query)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return answer(query, records, **named)

    with patch.context() as inner:
        inner.setattr(CriticGradients, "answer", interrupted)
        with pytest.raises(Interrupted, match="--resume"):
            db.fit(data, plan, ledger=ledger, out=folder / "run", memory="4GB", seed=1)
    return ledger, plan


def unread():
    """Return a stream of which no record may be read."""

    def batches():
        raise AssertionError("it is read again")
        yield

    return pa.RecordBatchReader.from_batches(pa.Table.from_pandas(people(), preserve_index=False).schema, batches())


def test_a_stopped_run_goes_on_with_its_rows_and_reads_no_data(monkeypatch, tmp_path):
    ledger, plan = stopped(monkeypatch, tmp_path, people())
    rows = tmp_path / "run" / "internal" / "codes"
    assert rows.stat().st_mode & 0o777 == 0o600
    kept = RowCodes.open(rows)
    assert kept is not None
    assert len(kept.rows) == len(kept.unit)
    assert kept.n_units == len(set(kept.unit.tolist()))
    assert repr(kept) == "RowCodes(private)"
    syn = db.fit(unread(), plan, ledger=ledger, out=tmp_path / "run", resume=True)  # memory need not be given again
    assert len(syn.sample(5)) == 5
    assert not rows.exists()


def test_rows_that_are_damaged_are_read_again_and_must_be_the_same(monkeypatch, tmp_path):
    ledger, plan = stopped(monkeypatch, tmp_path, people())
    rows = tmp_path / "run" / "internal" / "codes"
    rows.write_bytes(rows.read_bytes()[:-3])
    assert RowCodes.open(rows) is None
    with pytest.raises(RunFolderError, match="other records"):
        db.fit(people()[::-1], plan, ledger=ledger, out=tmp_path / "run", resume=True, memory="4GB")
    again = db.fit(people(), plan, ledger=ledger, out=tmp_path / "run", resume=True, memory="4GB")
    assert len(again.sample(5)) == 5


def test_a_method_that_needs_its_records_in_hand_says_so_before_anything_is_charged(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    schema = db.Schema.parse(DECLARED.replace("units: 300", "units: 2000000"))
    held = db.plan(schema, method="guided", epsilon=2.0, delta=1e-7, accountant="rdp")
    with pytest.raises(SettingError, match="plan with statistics"):
        db.fit(people(), held, ledger=ledger, memory="400MB")
    drawn = db.plan(schema, method="dpgan", epsilon=2.0, delta=1e-7, accountant="rdp")
    with pytest.raises(SettingError, match="give more") as refused:
        db.fit(people(), drawn, ledger=ledger, memory="400MB")
    assert "statistics" not in str(refused.value)
    assert [record.kind for record in ledger.entries] == ["open"]


# -- rows on disk ------------------------------------------------------------------------------------------------------


def test_rows_are_what_was_written_however_they_are_asked_for(tmp_path):
    rows = RowFile.within(tmp_path, (3, 2), np.int16)
    assert rows[:5].shape == (0, 3, 2)
    whole = np.arange(60, dtype=np.int16).reshape(10, 3, 2)
    rows.add(whole[:4])
    assert np.array_equal(rows[:], whole[:4])
    rows.add(whole[4:])
    chosen = np.array([7, 0, 7])
    for wanted in (slice(2, 5), slice(None), chosen, whole[:, 0, 0] > 20):
        assert np.array_equal(rows[wanted], whole[wanted])
    for wrong in (whole[:, :2], whole.astype(np.int8)):
        with pytest.raises(TypeError, match="another shape or type"):
            rows.add(wrong)
    rows.keep(np.array([1, 2, 5, 9]))
    assert np.array_equal(rows[:], whole[[1, 2, 5, 9]])
    assert (len(rows), rows.ndim, repr(rows)) == (4, 3, "RowFile(private)")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(TypeError, match="never serialised"):
        rows.__reduce__()
    rows.close()


def test_pages_that_were_looked_at_are_let_go_of(monkeypatch, tmp_path):
    monkeypatch.setattr(row_files, "_LET_GO", 2**20)
    rows = RowFile(NumberFile(tmp_path), (2**12,), np.uint8)
    for _ in range(2**6):
        rows.add(np.ones((2**8, 2**12), dtype=np.uint8))  # 64 MB
    most = 0
    for start in range(0, len(rows), 16):
        assert rows[start : start + 16].sum() == 2**16
        most = max(most, mapped_kilobytes() if start % 256 == 0 else 0)
    assert most < 2**13


def mapped_kilobytes():
    """Return how much of the unnamed file the process has in memory."""
    with Path("/proc/self/smaps").open() as file:
        inside, held = False, 0
        for line in file:
            if "-" in line.split(" ")[0] and ":" in line.split(" ")[3]:
                inside = "(deleted)" in line and "SYSV" not in line
            elif inside and line.startswith("Rss:"):
                held += int(line.split()[1])
    return held


def test_an_encoder_makes_rows_of_images_on_disk_as_they_are_asked_for(tmp_path):
    schema = db.Schema.parse(PICTURES)
    loaded = db.data.opening.open_data(as_npz(tmp_path), "images").load(schema, room=tmp_path)
    encoder = ImageEncoder(schema.resolve({}))
    rows, held = encoder.compacted(loaded.content), pictures()
    assert rows.shape == (40, 65)
    assert np.array_equal(rows[3:9], encoder.compact(loaded.content.take(slice(3, 9))))
    assert rows[:][:, 64].tolist() == held["labels"].tolist()
    assert isinstance(loaded.frame, pd.DataFrame)
    whole = encoded_records(encoder, rows[:], loaded.unit, loaded.n_units)  # so that either way goes on with the other
    assert encoded_records(encoder, rows, loaded.unit, loaded.n_units).fingerprint == whole.fingerprint
    assert repr(loaded.content) == "ImagesOnDisk(private)"
