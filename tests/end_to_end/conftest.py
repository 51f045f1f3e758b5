"""Commands as a user types them, in this process."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded


@pytest.fixture(scope="session")
def run():
    """Return the exit code and the one line of JSON of a command."""

    def typed(*words):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run_guarded(app, [*map(str, words), "--json"])
        (line,) = out.getvalue().splitlines()
        return code, json.loads(line)

    return typed


@pytest.fixture(scope="session")
def doublure(run):
    """Return the result of a command that must succeed."""

    def typed(*words):
        code, said = run(*words)
        assert code == 0, said
        return said["result"]

    return typed
