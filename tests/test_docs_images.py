"""The example of docs/images.md runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from doublure.releasing import verify

PAGE = (Path(__file__).resolve().parents[1] / "docs/images.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/images.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "(100, 8, 8, 1) uint8 100" in printed
    assert verify("bundle", ledger="digits.ledger")["files"] == 3


def test_the_commands_shown_exist():
    from doublure.cli.main import VERBS

    shown = re.findall(r"^doublure (\w+)", PAGE, flags=re.MULTILINE)
    assert set(shown) <= set(VERBS)
    assert len(shown) == 11
