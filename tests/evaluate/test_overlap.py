"""Shared records of public and private data are found, and nothing else is."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pandas as pd

import doublure as db
from doublure.errors import InputError
from doublure.evaluate.overlap import overlap


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


def test_an_open_fact_is_one_line(letters):
    text = "doublure: 1\nkind: table\ncolumns:\n  age: {type: integer, missing: false}\n"
    frame = pd.DataFrame({"age": [1, 2]})
    letters.refusal(InputError, lambda: overlap(frame, frame, db.Schema.parse(text)))


def test_no_fit_ever_asks():
    source = Path(db.__file__).parent
    for path in (*source.glob("*.py"), *(source / "methods").glob("*.py"), *(source / "public").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.endswith("evaluate.overlap") for name in names), path
