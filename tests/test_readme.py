"""The README's examples run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for kind, code in BLOCKS:
        if kind != "sh":
            continue
        script = code.replace("doublure ", f"{sys.executable} -m doublure ")
        done = subprocess.run(["sh", "-e", "-c", script], cwd=census, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (Path("census-bundle") / "data.parquet").is_file()
