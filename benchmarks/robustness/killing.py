"""What programs that kill fits share: cases are made until there have been enough kills, and kept one a line.

Each program says how it makes a case, kills it, and looks whether anything was under-counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

MEASURED = Path(__file__).resolve().parents[1] / "measured"
TESTS = Path(__file__).resolve().parents[2] / "tests"

Row: TypeAlias = "dict[str, Any]"
"""A case: at least ``kills``, and ``fault``, None where everything held."""


def borrowed(name: str) -> ModuleType:
    """Return a module of the tests: what they kill with, and whom."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, TESTS / name)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    if (support := str(TESTS / "support")) not in sys.path:
        sys.path.append(support)
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"borrowed {name}"] = sys.modules[module.__name__] = module
    spec.loader.exec_module(module)
    return module


class Fault(Exception):
    """Something does not hold."""


def hold(true: object, otherwise: str) -> None:
    """Raise a fault where something does not hold."""
    if not true:
        raise Fault(otherwise)


class Kept:
    """The cases of one program.

    Args:
        name: Of its file among those that are kept.
    """

    def __init__(self, name: str) -> None:
        self._path = MEASURED / f"{name}.jsonl"

    def rows(self) -> list[Row]:
        """Return the cases made so far."""
        return [json.loads(line) for line in self._path.read_text().splitlines()] if self._path.is_file() else []

    def until(self, kills: int, make: Callable[[int], Row], *, first: int = 0) -> None:
        """Make cases, each with a number of its own, until there have been so many kills.

        Args:
            kills: Of all cases together, those that are kept already included.
            make: Makes the case of a number.
            first: The least number.
        """
        rows = self.rows()
        done, number = sum(row["kills"] for row in rows), max([first, *(row["case"] + 1 for row in rows)])
        while done < kills:
            row = {"case": number, **make(number), "date": time.strftime("%Y-%m-%d")}
            with self._path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            done, number = done + row["kills"], number + 1

    def table(self, told: Callable[[list[Row]], str]) -> None:
        """Print what was found.

        Args:
            told: What else there is to say of the cases.
        """
        rows = self.rows()
        kills, faults = sum(row["kills"] for row in rows), [row for row in rows if row["fault"]]
        rate = f"below {3 / kills:.2g}" if kills and not faults else "not bounded"
        print(f"{len(rows)} runs, {kills} kills, {told(rows)}, {len(faults)} faults: {rate}")
        for row in faults:
            print(row["case"], row["fault"])


def main(about: str | None, kept: Kept, measure: Callable[[int, int], None], told: Callable[[list[Row]], str]) -> None:
    """Read the command line; kill, unless only the table is wanted, and print it.

    Args:
        about: The program.
        kept: Its cases.
        measure: Makes cases until so many kills, with numbers from one on.
        told: What else a table says.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first case: when to kill; the runs' noise is fresh")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    if not given.table:
        measure(given.kills, given.seed)
    kept.table(told)
