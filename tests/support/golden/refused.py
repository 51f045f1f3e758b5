"""Every text of refusals that a bad schema, cell, condition, setting or file gets: asked and said, a line each.

``kept/refusals.jsonl`` is the table: ``of`` says what is asked, ``asked`` is it, ``said`` is the text. To add a case,
add its line with an empty ``said`` and run ``python tests/golden/record.py --keep``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from doublure.data.opening import open_data
from doublure.encode.choice import encoder_for
from doublure.run import conditions
from golden import KEPT as FOLDER
from golden.cases import BUDGET, DAYS, DIGITS, METERS, PEOPLE, RELATED, RULES
from golden.recording import refusal

KEPT = FOLDER / "refusals.jsonl"
_CSV = """
doublure: 1
kind: table
multiline: true
units: 10
columns:
  age: {type: integer, bounds: [0, 120], missing: true}
  job: {type: category, values: [clerk, "a, b", "two\\nlines", é], missing: ["?"]}
"""
SCHEMAS = {
    "people": PEOPLE, "rules": RULES, "related": RELATED, "days": DAYS, "meters": METERS, "digits": DIGITS, "csv": _CSV,
}  # fmt: skip
_ANSWERS: dict[str, Any] = {"units": 300, "bounds": (0.0, 100.0), "missing": True, "values": ("cook", "nurse")}
_ANSWERS |= {"shares": {"few": 0.5, "many": 0.5}}
_OWN_ANSWERS: Mapping[str, Any] = {
    "columns.left.bounds": (datetime(2021, 1, 1), datetime(2021, 1, 5)),
    "attributes.place.shares": {"hill": 0.5, "coast": 0.5},
    "label.shares": {"a": 0.5, "b": 0.25, "c": 0.25},
}
_HEAD = "doublure: 1\nkind: table\nunits: 10\n"


def table() -> list[dict[str, Any]]:
    """Return the kept lines."""
    return [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]


def keep(lines: list[dict[str, Any]]) -> None:
    """Write them."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    KEPT.write_text(text, encoding="utf-8")


def said(line: Mapping[str, Any]) -> str:
    """Return what a line's question is answered with today."""
    return refusal(lambda: _ASK[line["of"]](line["asked"]))


def _column(text: str) -> None:
    db.Schema.parse(f"{_HEAD}columns:\n  a: {text}\n")


def _schema(text: str) -> None:
    db.Schema.parse(text, "s.yaml")


def _read(data: Any, schema: db.Schema) -> None:
    source = open_data(data, schema.kind, getattr(schema, "written", None))
    source.check(schema)
    source.load(schema)


def _cell(asked: Mapping[str, Any]) -> None:
    """Read cells of one column."""
    schema = db.Schema.parse(f"{_HEAD}columns:\n  a: {asked['column']}\n")
    _read(pd.DataFrame({"a": pd.Series(asked["cells"], dtype=object)}), schema)


def _file(asked: Mapping[str, Any]) -> None:
    """Read a text as a CSV file of a golden schema."""
    schema = db.Schema.parse(SCHEMAS.get(asked["schema"], asked["schema"]))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "data.csv"
        path.write_bytes(asked["text"].encode("latin-1"))
        _read(path, schema)


def _rule_files(asked: Mapping[str, str]) -> None:
    """Load a schema beside files."""
    with TemporaryDirectory() as folder:
        for name, text in asked.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        db.Schema.load(Path(folder) / "s.yaml")


def _arrays(asked: Mapping[str, Any]) -> None:
    """Read arrays of a schema of series or images."""
    schema = db.Schema.parse(asked["schema"])
    arrays = {name: np.array(cells) for name, cells in asked["arrays"].items()}
    _read(arrays, schema)


def _given(asked: Mapping[str, Any]) -> None:
    """Read what is asked of a sample; ``["..", 1, 2]`` is a range."""
    given = {name: tuple(cell[1:]) if _is_range(cell) else cell for name, cell in asked["given"].items()}
    conditions.read(given, *_fitted(asked["schema"]))


@cache
def _fitted(name: str) -> tuple[Any, Any]:
    """Return a golden schema as if it had been fitted, and its encoder."""
    schema = db.Schema.parse(SCHEMAS[name])
    answers = {question.path: _ANSWERS[question.path.rpartition(".")[2]] for question in schema.questions}
    answers |= {path: found for path, found in _OWN_ANSWERS.items() if path in answers}
    resolved = schema.resolve(answers)
    return resolved, encoder_for(resolved, db.plan(schema, **BUDGET).settings.encoding)


def _is_range(cell: object) -> bool:
    return isinstance(cell, list) and cell[:1] == [".."]


def _plan(asked: Mapping[str, Any]) -> None:
    text = SCHEMAS.get(asked["schema"], asked["schema"])
    db.plan(db.Schema.parse(text), method=asked["method"], **(BUDGET | asked["settings"]))


_ASK: Mapping[str, Callable[[Any], None]] = {
    "column": _column, "schema": _schema, "cell": _cell, "file": _file, "rule files": _rule_files,
    "arrays": _arrays, "given": _given, "plan": _plan,
}  # fmt: skip


def lines() -> Iterator[str]:
    """Yield what each question is answered with today, for a recorder."""
    for line in table():
        yield json.dumps({**line, "said": said(line)}, ensure_ascii=False)
