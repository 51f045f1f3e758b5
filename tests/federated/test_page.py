"""docs/federated.md runs as it stands, from an empty folder."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
import typer
from shell import type_in

from doublure.cli.main import app

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "federated.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_commands_shown_exist():
    group = typer.main.get_command(app).commands["federate"].commands
    assert set(re.findall(r"^doublure federate (\w+)", PAGE, flags=re.MULTILINE)) == set(group)


def test_nothing_is_promised_that_is_not():
    assert not re.search(r"anonym|\bsafe(?!tensors)", PAGE, flags=re.IGNORECASE)


@pytest.mark.skipif(
    importlib.util.find_spec("flwr") is None, reason="Flower is an extra: scripts/test --all installs it beside"
)
def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,), (commands,) = blocks("python"), blocks("sh")
    exec(compile(code, "docs/federated.md", "exec"), {})
    type_in(commands)
    record = json.loads(Path("run/run.json").read_text())
    assert record["federated"]["clients"] == ["north.csv", "south.csv"]
    assert not any(each["missed"] for each in record["federated"]["rounds"])
    assert len(Path("rows.csv").read_text().splitlines()) == 1001
