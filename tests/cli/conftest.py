from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded


@dataclass(frozen=True)
class Said:
    """What a command ended with."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        (line,) = self.out.splitlines()
        found = json.loads(line, parse_constant=lambda name: pytest.fail(name))
        assert set(found) == ({"ok", "command", "result"} if found["ok"] else {"ok", "command", "error"})
        assert found["ok"] == (self.code == 0)
        return found

    @property
    def line(self) -> str:
        """The one line of an error."""
        assert self.out == ""
        assert "Traceback" not in self.err
        (line,) = [line for line in self.err.splitlines() if not line.startswith("  ")]  # progress is indented
        assert line.startswith("doublure: ")
        return line


@pytest.fixture
def doublure(capfd: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Return the command line, run in this process."""

    def run(*words: object) -> Said:
        capfd.readouterr()
        code = run_guarded(app, [str(word) for word in words])
        out, err = capfd.readouterr()
        return Said(code=code, out=out, err=err)

    return run
