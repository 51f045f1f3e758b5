"""What ``images.py`` measures of ``bayesgan`` beside classifiers: both figures of its claim, its annotator alone."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import doublure as db
from doublure.data.images import Images
from doublure.measures.images.classifiers import map_batches
from doublure.networks.labelled import find_labeller
from results import mean_and_range

DELTA_MU = 1e-10
METHOD = "bayesgan"


def claims(synthesizer: db.Synthesizer, run: Path) -> dict[str, Any]:
    """Return both figures, and which of them is claimed."""
    estimate = json.loads((run / "internal" / "estimate.json").read_text())
    worst = synthesizer.plan.worst_case or (None, None)
    return {
        "claimed": synthesizer.guarantee.kind,
        "epsilon_mu": estimate["epsilon_mu"],
        "delta_mu": estimate["delta_mu"],
        "worst_epsilon": worst[0],
        "worst_delta": worst[1],
        **{name: estimate[name] for name in ("order", "conversion", "bernstein", "measured") if name in estimate},
        "sigma": synthesizer.plan.noise_multiplier,
    }


def annotator_accuracy(
    synthesizer: db.Synthesizer, images: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]
) -> float | None:
    """Return how often the annotator or labeller alone is right: the paper's private classifier."""
    labeller = find_labeller(synthesizer.generator)
    if labeller is None:
        return None
    scores = map_batches(labeller, Images(images=images))
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
        shown = "–" if None in found else mean_and_range(found, ".3g")
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
