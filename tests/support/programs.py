"""The programs of ``benchmarks/robustness``, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "robustness"


def program(name: str) -> ModuleType:
    """Return a program."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # as for a program that is run: its folder's other modules are found
    spec = importlib.util.spec_from_file_location(f"robustness_{name}", FOLDER / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
