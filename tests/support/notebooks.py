"""Notebooks, executed cell by cell in a process of their own, which needs no Jupyter."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

RUNNER = """
import ast, json, sys

names = {"__name__": "__main__"}
for number, source in enumerate(json.loads(sys.stdin.read())):
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), f"<cell {number}>", "exec"), names)
    found = None if last is None else eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), names)
    forms = [form for form in ("_repr_html_", "_repr_png_") if getattr(found, form, None) is not None]
    said = max([len(getattr(found, form)() or "") for form in forms] or [0 if found is None else len(repr(found))])
    sys.stderr.write("SHOWN " + json.dumps([number, type(found).__name__, said]) + "\\n")
"""


def cells(path: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code(path: Path) -> list[str]:
    """Return the source of its code cells."""
    found = ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]
    for source in found:
        ast.parse(source)
    return found


def execute(path: Path, folder: Path) -> list[tuple[int, str, int]]:
    """Run all code cells, warnings as errors; return of each what its last expression is and how much it shows."""
    settings = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-W", "error", "-c", RUNNER]
    done = subprocess.run(words, input=json.dumps(code(path)), cwd=folder, env=settings, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr[-4000:])
    lines = (line for line in done.stderr.splitlines() if line.startswith("SHOWN "))
    return [tuple(json.loads(line.removeprefix("SHOWN "))) for line in lines]
