"""Run test files again and again without the price of a start: what is slow to import is imported once, then forked.

A program of its own, since the process that forks must have imported neither the package nor a test. Its arguments are
the modules to import. It reads one JSON request a line and answers each with one line: ``root``, ``tests``,
``package``, ``compiled`` (whether compiled files are kept), ``seconds`` and ``processor_seconds`` in; ``rc``, ``by``
(the first test that failed), ``seconds``, ``processor_seconds``, ``timeout`` and ``package`` (where it was imported
from) out.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import default_plugins

_MEMORY = 16 * 2**30  # bytes of addresses: a mutant must not take the machine with it
_IMPORTED = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what is imported already


class _First:
    """Runs tests that search for examples after all others, and remembers the first that failed."""

    by = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the tests that take longest last."""
        items.sort(key=lambda item: hasattr(getattr(item, "obj", None), "hypothesis"))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Look at a test's report."""
        if report.failed:
            self.by = self.by or report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Look at whether a file could be read."""
        if report.failed:
            self.by = self.by or report.nodeid


def serve() -> None:
    """Answer requests until there are no more."""
    plugins = [f"_pytest.{name}" for name in default_plugins]
    plugins += [point.module for point in entry_points(group="pytest11")]
    for name in (*plugins, *sys.argv[1:]):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # what is here already is garbage in no child
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Run the tests of a request in a process of their own, and end it when its time is over."""
    ends, began = time.monotonic() + request["seconds"], time.monotonic()
    said, says = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(said)
        try:
            _run(request, says)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(70)
    os.close(says)
    timeout = False
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > ends:
            timeout = True
            _end(child)
        time.sleep(0.01)
    _end(child)  # what it has started and left behind
    with os.fdopen(said) as file:
        text = file.read()
    code = os.waitstatus_to_exitcode(status)
    found = {"rc": code, "by": "", "package": "", **(json.loads(text) if text else {})}
    seconds = {"seconds": time.monotonic() - began, "processor_seconds": used.ru_utime + used.ru_stime}
    return {**found, **seconds, "timeout": timeout or code == -signal.SIGXCPU}


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _run(request: Mapping[str, Any], says: int) -> None:
    """Be the process that runs the tests, and never return."""
    os.setsid()
    root = Path(request["root"])
    for standard, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, root / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        os.dup2(os.open(path, flags, 0o600), standard)
    os.dup2(1, 2)
    limit = int(request["processor_seconds"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    with contextlib.suppress(OSError, ValueError):  # not on every system
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    os.chdir(root)
    source, own = str(root / "src"), str(Path(__file__).parent)
    os.environ |= {"PYTHONPATH": source, "TMPDIR": str(root / "tmp"), "DOUBLURE_TEST_ALL": "1"}
    if not request["compiled"]:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
    sys.path[:] = [source, *(path for path in sys.path if path != own)]
    if hypothesis := sys.modules.get("hypothesis"):  # an example is enough, it need not be a small one
        phases = [phase for phase in hypothesis.Phase if phase.name in ("explicit", "generate")]
        hypothesis.settings.register_profile("mutants", phases=phases)
        hypothesis.settings.load_profile("mutants")
    first = _First()
    options = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        "--basetemp",
        str(root / "tmp" / "pytest"),
        *_IMPORTED,
    ]
    code = int(pytest.main([*options, *request["tests"]], plugins=[first]))
    package = getattr(sys.modules.get(request["package"]), "__file__", None) or ""
    os.write(says, json.dumps({"rc": code, "by": first.by, "package": package}).encode())
    os.close(says)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):  # who asked is gone
        serve()
