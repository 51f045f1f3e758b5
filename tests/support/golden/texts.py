"""The texts of all errors and warnings of doublure's that tests meet, test by test: what a refactoring keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from doublure import errors


class Listener:
    """A plugin of pytest that writes down every error of doublure's that is made while a test runs."""

    def __init__(self) -> None:
        self.said: set[str] = set()
        self._test = ""
        made = errors.DoublureError.__init__

        def heard(error: errors.DoublureError, *given: Any, **named: Any) -> None:
            made(error, *given, **named)
            self.said.add(f"{self._test}\t{type(error).__name__}: {error!s}")

        errors.DoublureError.__init__ = heard  # type: ignore[method-assign]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Note which test runs."""
        self._test = item.name


def record(path: Path, tests: list[str]) -> int:
    """Run tests and write what they met, sorted; return pytest's exit status."""
    listener = Listener()
    status = pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[listener])
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = sorted(line.encode("unicode_escape").decode() for line in listener.said)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return int(status)
