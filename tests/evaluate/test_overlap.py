"""Shared records of public and private data are found, and nothing else is."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import InputError
from doublure.measures.overlap import overlap


def test_shared_records_are_found(letters):
    schema = db.Schema.parse(letters.PUBLIC).model_copy(update={"units": 900})
    public, private = letters.public["images"], letters.private["images"]
    apart = overlap({"images": public}, {"images": private}, schema)
    assert (apart.same, apart.near, apart.private) == (0, 0, len(private))
    changed = private[10:13].copy()
    changed[:, 0, 0, 0] += 1
    shared = np.concatenate([public, private[:5], changed])
    found = overlap({"images": shared}, {"images": private}, schema)
    assert found.same == 5
    assert found.near == 8
    assert found.lines[0].startswith("Internal")


def test_labels_and_numbers_of_units_do_not_matter(letters):
    public = letters.public["images"]
    mixed = {"images": np.concatenate([letters.private["images"][:20], public[:80]]), "labels": np.zeros(100, int)}
    found = db.evaluate.overlap.overlap({"images": public}, mixed, db.Schema.parse(letters.PRIVATE))
    assert (found.private, found.same) == (100, 80)
    assert found.near == 80  # most are shared: what is usual is that of the others


def test_a_folder_for_each_class_is_compared_whatever_its_classes(letters, tmp_path):
    from doublure.data.images.sheets import picture_of

    for number, pixels in enumerate(letters.private["images"][:30]):
        (folder := tmp_path / f"kind {number % 2}").mkdir(exist_ok=True)
        picture_of(pixels).save(folder / f"{number}.png")
    for text in (letters.PRIVATE, letters.PUBLIC):
        found = overlap(tmp_path, letters.private, db.Schema.parse(text).model_copy(update={"units": 900}))
        assert found.same == 30


def test_rows_are_compared_by_their_own_values():
    """Not by the bins that a generator would see: many rows that differ fall into the same."""
    schema = db.Schema.parse("""
doublure: 1
kind: table
units: 300
columns:
  age: {type: integer, bounds: [0, 9999], missing: true}
  size: {type: real, bounds: [0, 1], missing: false}
  sex: {type: category, values: [f, m], missing: false}
  ill: {type: boolean, missing: false, roles: [condition]}
""")
    rng = np.random.default_rng(0)

    def drawn(n):
        age = pd.Series(rng.integers(0, 10_000, n)).astype("Int64").mask(rng.random(n) < 0.2)
        sex, ill = rng.choice(["f", "m"], n), rng.random(n) < 0.5
        return pd.DataFrame({"age": age, "size": rng.random(n), "sex": sex, "ill": ill})

    public, private = drawn(2000), drawn(300)
    found = overlap(public, private, schema)
    assert (found.private, found.same) == (300, 0)
    assert found.near < 60
    shared = pd.concat([public, private[:7].assign(ill=~private["ill"][:7])])  # a condition is not compared
    assert overlap(shared, private, schema).same == 7


def test_public_rows_need_no_condition_and_no_id():
    """Under the private schema, although public rows may say neither what is told apart nor whose they are."""
    schema = db.Schema.parse("""
doublure: 1
kind: table
units: 300
unit: {name: patient, id: patient, max_records: 2}
constraints: [{equal: [ill, treated]}]
columns:
  patient: {type: id}
  born: {type: integer, bounds: [0, 9999], missing: false}
  ill: {type: category, values: ["no", "yes"], missing: false, roles: [condition]}
  treated: {type: category, values: ["no", "yes"], missing: false}
""")
    rng = np.random.default_rng(1)
    private = pd.DataFrame({"patient": np.arange(300) // 3, "born": rng.integers(0, 5000, 300)})
    private["ill"] = private["treated"] = "no"
    public = pd.DataFrame(
        {"born": np.concatenate([private["born"].to_numpy()[:9], rng.integers(5000, 9999, 100)])}
    ).assign(treated="no")
    found = overlap(public, private, schema)
    assert (found.private, found.same >= 9) == (300, True)  # all rows, not two for each patient
    assert found.same == private["born"].isin(public["born"]).sum()
    alone = {"patient": schema.columns["patient"], "ill": schema.columns["ill"]}
    with pytest.raises(InputError, match="columns: holds conditions and ids alone"):
        overlap(public, private, schema.model_copy(update={"columns": alone, "constraints": ()}))


def test_an_open_fact_is_one_line(letters):
    text = "doublure: 1\nkind: table\ncolumns:\n  age: {type: integer, missing: false}\n"
    frame = pd.DataFrame({"age": [1, 2]})
    letters.refusal(InputError, lambda: overlap(frame, frame, db.Schema.parse(text)))


def test_no_fit_ever_asks():
    source = Path(db.__file__).parent
    may = {source / "measures" / "overlap.py", source / "evaluate" / "__init__.py", source / "cli" / "public.py"}
    assert all(mentions_overlap(path.read_text()) for path in may)
    asking = [path for path in source.rglob("*.py") if path not in may and mentions_overlap(path.read_text())]
    assert asking == []
    for line in (
        "from doublure.evaluate import overlap",
        "import doublure.measures.overlap",
        "db.evaluate.overlap(a, b)",
    ):
        assert mentions_overlap(line)


def mentions_overlap(code: str) -> bool:
    """Whether code has a name of that word, however it came by it; words in texts do not count."""
    bare = [
        node for node in ast.walk(ast.parse(code if "overlap" in code else "")) if not isinstance(node, ast.Constant)
    ]
    return any("overlap" in str(value) for node in bare for value in vars(node).values() if isinstance(value, str))


def test_it_says_whose_data_does_not_fit(letters):
    schema = db.Schema.parse(letters.PUBLIC).model_copy(update={"units": 900})
    wrong = {"images": np.zeros((5, 9, 9, 1), np.uint8)}
    for sets, whose in (((wrong, letters.private), "public"), ((letters.public, wrong), "private")):
        error = letters.refusal(InputError, lambda sets=sets: overlap(*sets, schema))
        assert error.field.startswith(f"{whose} data, ")


def test_a_schema_may_be_a_path_and_a_seed_may_be_wrong(letters, tmp_path):
    schema = db.Schema.parse(letters.PUBLIC)
    schema.save(tmp_path / "odd.yaml")
    images = {"images": letters.public["images"][:20]}
    assert overlap(images, images, tmp_path / "odd.yaml").same == 20
    assert letters.refusal(InputError, lambda: overlap(images, images, schema, seed=-1)).field == "seed"
