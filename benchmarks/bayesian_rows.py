"""What ``images.py`` measures of ``bayesgan`` beside its students: both figures of its claim, its annotator alone."""

from __future__ import annotations

import hashlib
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import doublure as db
from doublure.data.images import Images
from doublure.errors import CeilingPassed
from doublure.evaluate.students import seen_by
from doublure.run_folder import RunFolder

DELTA_MU = 1e-10
METHOD = "bayesgan"
_ROOM = 1e12  # the paper's settings have a worst case of some 1e9


def fitted(
    plan: db.Plan, arrays: Mapping[str, np.ndarray[Any, Any]], cell: Sequence[object], runs: Path, seed: int
) -> tuple[db.Synthesizer, dict[str, Any]]:
    """Fit, or go on with a fit that was cut off; the steps lost then are paid for at their worst, as always."""
    folder = runs / hashlib.sha256(json.dumps([*map(str, cell)]).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    book, out = folder / "ledger", folder / "run"
    room = {"dataset": str(cell[0]), "epsilon": _ROOM, "delta": 0.5}
    ledger = db.Ledger.open(book) if book.exists() else db.Ledger.create(book, **room)
    start = time.perf_counter(), time.process_time()
    begun = (out / "run.json").is_file()
    try:
        if begun and RunFolder.open(out).run.get("status") == "done":
            understudy = db.load(out)
        else:
            understudy = db.fit(arrays, plan, ledger=ledger, out=out, seed=None if begun else seed, resume=begun)
    except CeilingPassed as passed:
        understudy = passed.understudy  # type: ignore[assignment]
    cost = {"fit_seconds": round(time.perf_counter() - start[0])}
    cost["fit_cpu_seconds"] = round(time.process_time() - start[1])
    return understudy, {**cost, **claims(understudy, out), "resumed": begun}


def claims(understudy: db.Synthesizer, run: Path) -> dict[str, Any]:
    """Return both figures, and which of them is claimed."""
    estimate = json.loads((run / "internal" / "estimate.json").read_text())
    worst = understudy.plan.worst_case or (None, None)
    return {
        "claimed": understudy.guarantee.kind,
        "epsilon_mu": estimate["epsilon_mu"],
        "delta_mu": estimate["delta_mu"],
        "worst_epsilon": worst[0],
        "worst_delta": worst[1],
        "sigma": understudy.plan.noise_multiplier,
    }


def annotator_accuracy(
    understudy: db.Synthesizer, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]
) -> float | None:
    """Return how often the annotator alone is right: the paper's private classifier."""
    labeller = getattr(understudy.generator, "labeller", None)
    if labeller is None:
        return None
    scores = seen_by(labeller, Images(images=images))
    return float((scores.argmax(1) == labels).mean())


def table(cells: Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]]) -> None:
    """Print what is claimed of each cell of ``bayesgan``, and its annotator's accuracy: means over seeds."""
    rows = [(cell, entries) for cell, entries in cells.items() if cell[1] == METHOD]
    if not rows:
        return
    print("\n| data | ceiling | ε_μ | δ_μ | worst case | claimed | annotator | by number of images | settings |")
    print("|---|--:|--:|--:|---|---|--:|---|---|")
    for (data, _, ceiling, _, _, chosen, *_), entries in rows:
        found = [entry["epsilon_mu"] for entry in entries]
        shown = "–" if None in found else f"{statistics.mean(found):.3g} ({min(found):.3g}–{max(found):.3g})"
        first = entries[0]
        worst = f"({first['worst_epsilon']:.4g}, {first['worst_delta']:g})"
        right = [entry["annotator"] for entry in entries if entry.get("annotator") is not None]
        alone = f"{100 * statistics.mean(right):.1f} %" if right else "–"
        kinds = "/".join(sorted({entry["claimed"] for entry in entries}))
        sizes = first.get("by_size") or {}
        means = {size: statistics.mean(entry["by_size"][size] for entry in entries) for size in sizes}
        curve = ", ".join(f"{size}: {100 * mean:.1f}" for size, mean in means.items()) or "–"
        row = (data, ceiling, shown, f"{first['delta_mu']:g}", worst, kinds, alone, curve, chosen)
        print("|", " | ".join(str(part) for part in row), "|")
