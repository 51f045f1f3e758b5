"""The README's examples run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from shell import type_in

import doublure as db

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def census(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    db.datasets.load_adult().to_csv("adult.csv", index=False)
    db.Schema.load(db.datasets.adult_schema_path()).save("adult.schema.yaml")
    return tmp_path


def test_there_are_examples() -> None:
    assert {kind for kind, _ in BLOCKS} == {"python", "sh"}


def test_python_examples(census: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for kind, code in BLOCKS:
        if kind == "python":
            exec(compile(code, "README.md", "exec"), names)
    assert "differentially private for one person" in capsys.readouterr().out
    assert len(names["rows"]) == 1000  # type: ignore[arg-type]
    assert (Path("bundle") / "card.json").is_file()


def test_shell_examples(census: Path) -> None:
    for kind, code in BLOCKS:
        if kind == "sh":
            type_in(code)
    assert (Path("census-bundle") / "data.parquet").is_file()
