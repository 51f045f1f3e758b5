"""What ``latent.py`` has measured: a table, curves over ε with intervals (figures 4, 5, 7, 8), panels of images (1)."""

from __future__ import annotations

import statistics
from typing import Any, TypeAlias

import numpy as np
import torch

from doublure.data.images.sheets import contact_sheet
from results import OUT, finished, mean_and_half

Entries: TypeAlias = "list[dict[str, Any]]"
SCORES = ("accuracy", "precision", "recall", "f1")
PICTURES = ("classifier_score", "frechet", "frechet_by_label")
METHODS = ("real", "gan", "inversion", "latentgan", "dpgan", "xie")
_PANELS, _ROW = OUT / "panels", 20
_TITLES = {"f1": "macro F1", "classifier_score": "classifier score", "frechet": "Fréchet distance"}


def cells() -> dict[tuple[Any, ...], Entries]:
    """Return results by task, method, ε and what else they were made with; one entry a seed."""
    found: dict[tuple[Any, ...], Entries] = {}
    for entry in finished("latent"):
        task, method, epsilon, _, *rest = entry["cell"]
        found.setdefault((task, method, epsilon, *rest), []).append(entry)
    return found


def values_of(entries: Entries, name: str) -> list[float]:
    """Return a figure of each seed; nothing where it was not asked for."""
    return [value for entry in entries if (value := entry["scores"].get(name, entry.get(name))) is not None]


def table() -> None:
    """Print mean and range over seeds."""
    print("| task | method | ε | accuracy | macro precision | recall | F1 | classifier score | Fréchet | by label "
          "| CPU s, most | seeds | records, epochs, settings |")  # fmt: skip
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for (task, method, epsilon, *rest), entries in cells().items():
        shown = [_mean_and_range(values_of(entries, name), 100, 1) for name in SCORES]
        shown += [_mean_and_range(values_of(entries, name), 1, 2) for name in PICTURES]
        cpu = max(entry["cpu_seconds"] for entry in entries)  # of a seed that inverted, where another had no need
        told = _told(rest)
        print("|", " | ".join(str(x) for x in (task, method, epsilon or "–", *shown, cpu, len(entries), told)), "|")


def curves() -> None:
    """Draw a picture of each task: figures over ε with 95 % intervals over seeds; what has no ε is a band."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    measured = cells()
    for task in dict.fromkeys(key[0] for key in measured):
        own = {key[1:]: entries for key, entries in measured.items() if key[0] == task}
        names = [name for name in ("accuracy", *_TITLES) if any(values_of(entries, name) for entries in own.values())]
        figure, panes = plt.subplots(1, len(names), figsize=(5 * len(names), 4), layout="constrained", squeeze=False)
        for pane, name in zip(panes[0], names, strict=True):
            for (method, *rest), points in _lines(own, name).items():
                line = " ".join(filter(None, (method, _told(rest))))
                if None in points:
                    middle, half = points[None]
                    pane.axhline(middle, linestyle=":", color="grey")
                    pane.axhspan(middle - half, middle + half, alpha=0.1, color="grey")
                    pane.annotate(line, (0.01, middle), xycoords=("axes fraction", "data"), fontsize=7)
                else:
                    at = sorted(points)
                    middles, halves = zip(*(points[epsilon] for epsilon in at), strict=True)
                    pane.errorbar(at, middles, yerr=halves, marker="o", capsize=3, label=line)
            pane.set(xscale="log", xlabel="ε", ylabel=_TITLES.get(name, name))
        figure.legend(*panes[0][0].get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=8)
        OUT.mkdir(exist_ok=True)
        path = OUT / f"latent-{task}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        print(path)


def keep(task: str, method: str, epsilon: float | None, made: torch.Tensor, labels: np.ndarray[Any, Any]) -> None:
    """Keep a panel's row: as many images of each label as fill it, in place of what was kept before."""
    kinds = np.unique(labels)
    rows = np.concatenate([np.flatnonzero(labels == kind)[: max(1, _ROW // len(kinds))] for kind in kinds])
    pixels = ((made[torch.from_numpy(rows)] + 1) * 127.5).round().clamp(0, 255).byte().permute(0, 2, 3, 1)
    _PANELS.mkdir(parents=True, exist_ok=True)
    np.save(_PANELS / f"{task} {METHODS.index(method)} {epsilon or 0:05g}.npy", pixels.numpy(), allow_pickle=False)


def panels() -> None:
    """Draw a sheet of each task: a row of images for each method and ε, the last seed's."""
    kept = sorted(_PANELS.glob("*.npy"))
    for task in dict.fromkeys(path.stem.split(" ")[0] for path in kept):
        rows = []
        for path in (path for path in kept if path.stem.split(" ")[0] == task):
            _, number, epsilon = path.stem.split(" ")
            name = METHODS[int(number)] + (f", ε = {float(epsilon):g}" if float(epsilon) else "")
            rows.append((name, np.load(path, allow_pickle=False)))
        drawn = _PANELS / f"{task}.png"
        contact_sheet(rows, f"{task}: artificial images (δ = 1e-5 where there is an ε), and real ones").save(drawn)
        print(drawn)


def _lines(own: dict[tuple[Any, ...], Entries], name: str) -> dict[tuple[Any, ...], dict[Any, tuple[float, float]]]:
    """Return each line's points: ε to mean and half an interval."""
    found: dict[tuple[Any, ...], dict[Any, tuple[float, float]]] = {}
    for (method, epsilon, *rest), entries in own.items():
        if values := values_of(entries, name):
            found.setdefault((method, *rest), {})[epsilon] = mean_and_half(values)
    return found


def _mean_and_range(values: list[float], scale: float, digits: int) -> str:
    if not values:
        return "–"
    low, middle, high = (round(scale * value, digits) for value in (min(values), statistics.mean(values), max(values)))
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def _told(rest: list[Any]) -> str:
    return ", ".join(str(word) for word in rest if word not in ("[]", False, None))
