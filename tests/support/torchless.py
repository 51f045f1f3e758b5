"""A process in which torch cannot be imported: what a plain install is. It forks for all that is run in it."""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import doublure

_PROGRAM = """
import importlib, json, os, sys, traceback

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Absent())
for name in ("doublure.cli.main", "doublure.run.fitting", "doublure.releasing.bundle", "sklearn.ensemble",
             "dp_accounting.pld", "dp_accounting.rdp"):
    importlib.import_module(name)
importlib.import_module("remembered").install()

for line in sys.stdin:
    asked = json.loads(line)
    if (child := os.fork()) == 0:
        code = 1
        try:
            os.chdir(asked["folder"])
            said = os.open(asked["said"], os.O_WRONLY)
            os.dup2(said, 1)
            os.dup2(said, 2)
            exec(compile(asked["code"], "<torchless>", "exec"), {"__name__": "__main__"})
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def _process() -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(doublure.__file__).parents[1]), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM], env=environment, text=True, **pipes)
    atexit.register(process.communicate)
    return process


def run(code: str, folder: Path) -> list[str]:
    """Run code in a child of such a process, and return the lines that it prints.

    Args:
        code: What is run.
        folder: Where.

    Raises:
        AssertionError: It ended with an error; with what it said.
    """
    process = _process()
    with tempfile.NamedTemporaryFile("r+", encoding="utf-8") as said:
        process.stdin.write(json.dumps({"code": code, "folder": str(folder), "said": said.name}) + "\n")
        process.stdin.flush()
        code = process.stdout.readline().strip()
        text = said.read()
    assert code == "0", text
    return text.splitlines()
