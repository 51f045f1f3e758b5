"""Commands as a page shows them, typed one after another in this process: a start of Python each would take longer."""

from __future__ import annotations

import shlex

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded


def type_in(block: str) -> None:
    """Run the lines of a block of ``sh``; each is a command of doublure, and has to end with 0."""
    for line in block.splitlines():
        words = shlex.split(line, comments=True)
        if words:
            assert words[0] == "doublure", line
            assert run_guarded(app, words[1:]) == 0, line
