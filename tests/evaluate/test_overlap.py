"""Shared records of public and private data are found, and nothing else is."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

import doublure as db
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


def test_no_fit_ever_asks():
    source = Path(db.__file__).parent
    for path in (*source.glob("*.py"), *(source / "methods").glob("*.py"), *(source / "public").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.endswith("evaluate.overlap") for name in names), path
