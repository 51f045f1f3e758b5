"""Fits that are kept: one that was made is loaded, and samples as it would now; one that was cut off goes on."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import doublure as db
from doublure.cli.terminal import TerminalProgress
from doublure.errors import CeilingPassed
from doublure.run.folder import RunFolder
from doublure.support.devices import chosen_device
from results import OUT

RUNS = OUT / "runs"
_ROOM = 1e12  # bayesgan's settings in its paper have a worst case of some 1e9


def kept(
    plan: db.Plan, arrays: Mapping[str, np.ndarray[Any, Any]], cell: Sequence[object], seed: int
) -> tuple[db.Synthesizer, dict[str, Any], Path]:
    """Fit, go on with a fit that was cut off, or load one; steps lost then are paid for at their worst, as always.

    Args:
        plan: What is fitted.
        arrays: Images and labels.
        cell: Whose fit this is.
        seed: Of the initial weights.

    Returns:
        The synthesizer, what its fit took (whenever that was), and its run folder.
    """
    folder = RUNS / hashlib.sha256(json.dumps([*map(str, cell)]).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    book, out, took = folder / "ledger", folder / "run", folder / "took.json"
    room = {"dataset": str(cell[0]), "epsilon": _ROOM, "delta": 0.5}
    ledger = db.Ledger.open(book) if book.exists() else db.Ledger.create(book, **room)
    begun = (out / "run.json").is_file()
    if begun and RunFolder.open(out).run.get("status") == "done":
        return _sampling_as(plan, db.load(out)), json.loads(took.read_text()) if took.exists() else {}, out
    start = time.perf_counter(), time.process_time()
    first = None if begun else seed
    try:
        with TerminalProgress() as progress:
            how: dict[str, Any] = {"seed": first, "resume": begun, "device": chosen_device(), "progress": progress}
            synthesizer = db.fit(arrays, plan, ledger=ledger, out=out, **how)
    except CeilingPassed as passed:
        synthesizer = passed.synthesizer  # type: ignore[assignment]
    cost = {"fit_seconds": round(time.perf_counter() - start[0])}
    cost["fit_cpu_seconds"] = round(time.process_time() - start[1])
    took.write_text(json.dumps({**cost, "resumed": begun}))
    return synthesizer, {**cost, "resumed": begun}, out


def _sampling_as(plan: db.Plan, made: db.Synthesizer) -> db.Synthesizer:
    """Return what was kept, sampling as the plan has it; refuse it where the plan would have made another."""
    own, asked = dict(made.plan.settings), dict(plan.settings)
    changed = {name: value for name, value in asked.items() if own.get(name) != value}
    if fitted := sorted(changed.keys() - plan.settings.sampling_only_fields):
        raise SystemExit(f"{made.plan.method} was kept with other settings: {', '.join(fitted)}; delete its folder")
    return made.sampling_with(**changed)
