"""The README's examples run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tiers import by_tier

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded

ROOT = Path(__file__).resolve().parents[1]
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    return tmp_path


def commands() -> list[list[str]]:
    (block,) = [code for kind, code in BLOCKS if kind == "sh"]
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


def test_there_are_examples() -> None:
    assert [kind for kind, _ in BLOCKS] == ["python", "sh"]
    assert len(commands()) == 8


def test_python_examples(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for kind, code in BLOCKS:
        if kind == "python":
            exec(compile(code, "README.md", "exec"), names)
    assert "differentially private for one person" in capsys.readouterr().out
    assert len(names["rows"]) == 1000  # type: ignore[arg-type]
    assert (Path("bundle") / "card.json").is_file()


AGAIN = {
    "demo": (0, "are here already"),
    "schema": (0, "0 undeclared facts"),
    "plan": (0, "plan.json holds this plan already"),
    "budget": (2, "census.ledger: is the ledger of adult already: ε = 2 of 3 and δ = 9e-06 of 1e-05 are left"),
    "fit": (2, "census-run: holds a finished run"),
    "sample": (2, "rows.parquet: already exists"),
    "release": (2, "census-bundle: holds a bundle already"),
    "verify": (0, "census-bundle agrees with its card"),
}
"""Each of the commands, typed again in the same folder: its exit code, and what it says is there."""


def test_shell_examples_in_empty_folders_and_again(
    empty: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("one", "two")[: by_tier(1, 2)]:
        (empty / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(empty / folder)
        for words in commands():
            assert run_guarded(app, words) == 0, words
        assert (Path("census-bundle") / "data.parquet").is_file()
    before = {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}
    for words in commands():
        capsys.readouterr()
        code = run_guarded(app, words)
        shown = capsys.readouterr()
        expected, there = AGAIN[words[0]]
        assert code == expected, words
        said = [line for line in (shown.err if code else shown.out).splitlines() if there in line]
        assert len(said) == 1, (words, shown)
        if code:
            assert [line for line in shown.err.splitlines() if not line.startswith("  ")] == said
    assert {path: path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()} == before
