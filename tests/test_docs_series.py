"""What docs/series.md shows runs, and is read, as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

from doublure.releasing import verify
from doublure.schema import Schema
from doublure.schema.series import Windows

PAGE = (Path(__file__).resolve().parents[1] / "docs/series.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/series.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "(100, 4, 1) ('litres',) True" in printed
    assert verify("bundle", ledger="water.ledger")["files"] == 5


def test_the_schema_shown_is_read_and_every_key_is_described():
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    assert Schema.parse(text).undeclared == ()
    for key in Windows.model_fields:
        assert f"`series.{key}`" in PAGE


def test_the_commands_shown_exist():
    from doublure.cli.main import VERBS

    shown = re.findall(r"^doublure (\w+)", PAGE, flags=re.MULTILINE)
    assert set(shown) <= set(VERBS)
    assert len(shown) == 7
