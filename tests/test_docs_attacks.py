"""The example of docs/attacks.md runs as it stands, and the page names every attack."""

from __future__ import annotations

import re
from pathlib import Path

from doublure.attack import table

PAGE = (Path(__file__).resolve().parents[1] / "docs/attacks.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/attacks.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "No attack of 5 passes the claim" in printed
    assert "the attacker held: the released records" in printed
    assert (tmp_path / "audit.html").is_file()
    assert (tmp_path / "audit.json").is_file()


def test_every_attack_and_group_is_named():
    told = set(re.findall(r"^\| `([a-z][\w-]+)` \|", PAGE, flags=re.MULTILINE))
    assert told == set(table.ATTACKS)
    for group in table.GROUPS:
        assert f"`{group}`" in PAGE


def test_the_commands_shown_exist():
    from doublure.cli.main import VERBS

    shown = re.findall(r"^doublure (\w+)", PAGE, flags=re.MULTILINE)
    assert set(shown) <= set(VERBS)
    assert len(shown) == 5


def test_nothing_is_promised_that_is_not():
    assert not re.search(r"anonym|\bsafe", PAGE, flags=re.IGNORECASE)
