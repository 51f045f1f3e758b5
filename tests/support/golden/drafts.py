"""What a draft, a check and an export of schemas say: all that stands on a column's type before a fit."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from golden import KEPT as FOLDER
from golden import cases
from golden.recording import HIDDEN

KEPT = FOLDER / "drafts.json"
CODEBOOK = """column,type,values,lower,upper,missing,description
age,integer,,0,99,false,in years
sex,category,f|m,,,false,
grade,ordinal,low|2|high,,,?,
born,date,,1930-01-01,2010-12-31,,
seen,datetime,,2020-03-28,2020-03-30,,
raw,real,,-1,1,false,
member,boolean,,,,true,
"""


def record() -> dict[str, str]:
    """Return texts by name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        found = {"exported.json": json.dumps(db.Schema.json_schema(), indent=1) + "\n"}
        people = cases.people(1)
        people.to_csv(folder / "people.csv", index=False)
        people.assign(born=pd.to_datetime(people["born"])).astype({"wage": str, "hours": str, "gain": str}).to_parquet(
            folder / "people.parquet"
        )
        cases.ruled(1).to_csv(folder / "rules.csv", index=False, sep=";")
        cases.readings(1).to_csv(folder / "meters.csv", index=False)
        np.savez(folder / "digits.npz", **cases.pictures(1))
        (folder / "related").mkdir()
        for table, frame in cases.patients(1).items():
            frame.to_csv(folder / "related" / f"{table}.csv", index=False)
        (folder / "codebook.csv").write_text(CODEBOOK)
        for source in ("people.csv", "people.parquet", "rules.csv", "meters.csv", "digits.npz", "related"):
            kind = ("--kind", "series") if source == "meters.csv" else ()
            found[f"drafted {source}.txt"] = _said("schema", "draft", folder / source, *kind)
            schema = folder / f"{source}.yaml"
            _said("schema", "draft", folder / source, *kind, "-o", schema)
            found[f"checked {source}.txt"] = _said("schema", "check", schema, "--data", folder / source)
        book = ("--codebook", folder / "codebook.csv")
        found["drafted by a codebook.txt"] = _said("schema", "draft", folder / "people.csv", *book)
        for name, text in (("people", cases.PEOPLE), ("rules", cases.RULES), ("related", cases.RELATED)):
            (folder / f"{name}.yaml").write_text(text)
            data = folder / ("related" if name == "related" else f"{name}.csv")
            found[f"checked {name}.txt"] = _said("schema", "check", folder / f"{name}.yaml", "--data", data)
        values = ("--values", folder / "misfits.csv")
        strict = cases.PEOPLE.replace("misfit: coerce\n", "")
        (folder / "strict.yaml").write_text(strict)
        found["misfits.txt"] = _said(
            "schema", "check", folder / "strict.yaml", "--data", folder / "people.csv", *values
        )
        if (folder / "misfits.csv").exists():
            found["misfits.csv"] = (folder / "misfits.csv").read_text()
        return {file: text.replace(str(folder), HIDDEN) for file, text in found.items()}


def keep(found: dict[str, str]) -> None:
    """Write what the suite compares."""
    KEPT.write_text(json.dumps(shortened(found), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def shortened(found: dict[str, str]) -> dict[str, Any]:
    """Return texts as lines, and of the export what has which keys: its form is a library's."""
    defined = json.loads(found["exported.json"])["$defs"]
    keys = {name: list(each["properties"]) for name, each in defined.items() if "properties" in each}
    return {file: text.splitlines() for file, text in found.items()} | {"exported.json": keys}


def _said(*words: object) -> str:
    from doublure.cli.main import app
    from doublure.cli.terminal import run_guarded

    heard = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        code = run_guarded(app, [str(word) for word in words])
    heard.flush()
    return f"{heard.buffer.getvalue().decode()}exit {code}\n"  # type: ignore[attr-defined]
