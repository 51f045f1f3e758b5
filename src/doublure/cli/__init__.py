"""The command line: one file a verb, no logic."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line; the console script's entry. An interrupt while it is still loading is one line too."""
    try:
        from doublure.cli.main import run as run_verb

        run_verb()
    except KeyboardInterrupt:
        sys.stderr.write("doublure: stopped by the user\n")
        sys.exit(130)
