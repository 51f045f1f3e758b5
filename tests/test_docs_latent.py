"""The example of docs/latent.md runs as it stands, and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from doublure.releasing import verify

PAGE = (Path(__file__).resolve().parents[1] / "docs/latent.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(code, "docs/latent.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "(100, 8, 8, 1) Public generator, autoencoder, SHA-2" in printed
    assert "Public source: " in printed
    assert verify("bundle", ledger="even.ledger")["files"] == 3


def test_the_commands_shown_exist():
    import typer

    from doublure.cli.main import VERBS, app

    shown = re.findall(r"^doublure (\w+)", PAGE, flags=re.MULTILINE)
    assert set(shown) <= set(VERBS)
    public = typer.main.get_command(app).commands["public"].commands
    named = re.findall(r"doublure public (\w+)", PAGE)
    assert set(named) == set(public)
