"""A process in which torch cannot be imported: what a plain install is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import doublure

_BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Absent())
"""


def run(code: str, folder: Path) -> list[str]:
    """Run code in such a process, and return the lines that it prints.

    Args:
        code: What is run.
        folder: Where.

    Raises:
        AssertionError: It ended with an error; with what it said.
    """
    source = str(Path(doublure.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", _BLOCKED + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": source, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
