"""What ``latent.py`` has measured: a table, curves over ε with intervals (figures 4, 5, 7, 8), panels of images (1)."""

from __future__ import annotations

import statistics
from typing import Any, TypeAlias

import numpy as np
import torch

from doublure.data.images.sheets import contact_sheet
from results import OUT, finished

Entries: TypeAlias = "list[dict[str, Any]]"
SCORES = ("accuracy", "precision", "recall", "f1")
PICTURES = ("classifier_score", "frechet", "frechet_by_label")
METHODS = ("real", "gan", "inversion", "latentgan", "dpgan", "xie")
_PANELS, _ROW = OUT / "panels", 20
_COLOURS = {"latentgan": "#0b6e8f", "dpgan": "#c8553d", "xie": "#b58a1b"}
_DASHES = ("-", "--", ":", "-.")
_TITLES = {"f1": "macro F1", "classifier_score": "classifier score", "frechet_by_label": "Fréchet distance, by label"}


def cells() -> dict[tuple[Any, ...], Entries]:
    """Return results by task, method, ε and what else they were made with; one entry a seed."""
    found: dict[tuple[Any, ...], Entries] = {}
    for entry in finished("latent"):
        task, method, epsilon, _, *rest = entry["cell"]
        found.setdefault((task, method, epsilon, *rest), []).append(entry)
    return found


def values_of(entries: Entries, name: str) -> list[float]:
    """Return a figure of each seed that it was asked for in; nothing where some seed has none to give."""
    figures = [{**entry, **entry["scores"]} for entry in entries]
    values = [figure[name] for figure in figures if name in figure]
    return [] if None in values else values


def table() -> None:
    """Print mean and range over seeds: what was tested officially, then what settings were chosen by."""
    found = cells()
    for held_out in (False, True):
        shown = {key: entries for key, entries in sorted(found.items(), key=_place) if _held_out(key) == held_out}
        print("\n**Training data that was kept aside**\n" if held_out else "**Official test data**\n")
        print("| task | method | ε | accuracy | macro precision | recall | F1 | classifier score | Fréchet | by label "
              "| CPU s, most | seeds | records, epochs, settings |")  # fmt: skip
        print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
        for (task, method, epsilon, *rest), entries in shown.items():
            figures = [_mean_and_range(values_of(entries, name), 100, 1) for name in SCORES]
            figures += [_mean_and_range(values_of(entries, name), 1, 2) for name in PICTURES]
            cpu = max(entry["cpu_seconds"] for entry in entries)  # of a seed that inverted, where another had no need
            row = (task, method, epsilon or "–", *figures, cpu, len(entries), _told(rest))
            print("|", " | ".join(str(x) for x in row), "|")


def _place(cell: tuple[tuple[Any, ...], Entries]) -> tuple[Any, ...]:
    """Return where a cell stands in the table: by task, method, settings, ε."""
    task, method, epsilon, *rest = cell[0]
    return task, METHODS.index(method), _told(rest), epsilon or 0


def curves() -> None:
    """Draw a picture of each task: figures over ε with their range over seeds; what has no ε is a band."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    measured = {key: entries for key, entries in cells().items() if not _held_out(key)}
    for task in dict.fromkeys(key[0] for key in measured):
        own = {key[1:]: entries for key, entries in measured.items() if key[0] == task}
        names = [name for name in ("accuracy", *_TITLES) if any(values_of(entries, name) for entries in own.values())]
        figure, panes = plt.subplots(
            1, len(names), figsize=(3.6 * len(names), 3.9), layout="constrained", squeeze=False
        )
        looks = _looks(own)
        for pane, name in zip(panes[0], names, strict=True):
            for line, points in _lines(own, name).items():
                if None in points:
                    low, middle, high = points[None]
                    pane.axhline(middle, **looks[line])
                    pane.axhspan(low, high, alpha=0.1, color="grey", linewidth=0)
                else:
                    at = sorted(points)
                    lows, middles, highs = np.array([points[epsilon] for epsilon in at]).T
                    pane.errorbar(
                        at,
                        middles,
                        yerr=(middles - lows, highs - middles),
                        marker="o",
                        markersize=4,
                        capsize=3,
                        **looks[line],
                    )
            pane.set(xscale="log", xlabel="ε", title=_TITLES.get(name, name))
            budgets = sorted({epsilon for _, epsilon, *_ in own if epsilon is not None})
            pane.set_xticks(budgets, [f"{epsilon:g}" for epsilon in budgets], minor=False)
            pane.minorticks_off()
            pane.spines[["top", "right"]].set_visible(False)
        shown = {
            label: handle for pane in panes[0] for handle, label in zip(*pane.get_legend_handles_labels(), strict=True)
        }
        figure.legend(shown.values(), shown.keys(), loc="outside lower center", frameon=False, ncols=min(len(shown), 6))
        figure.suptitle(f"{task}, δ = 1e-5, mean and range of the seeds", x=0.01, ha="left", fontsize=11)
        OUT.mkdir(exist_ok=True)
        path = OUT / f"latent-{task}.png"
        figure.savefig(path, dpi=110)
        plt.close(figure)
        print(path)


def _held_out(key: tuple[Any, ...]) -> bool:
    """Return whether a cell was tested on training data that was kept aside, as settings are chosen."""
    return bool(key[5])


def _looks(own: dict[tuple[Any, ...], Entries]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return how each line is drawn, in every pane alike: a colour a method, a dash for each of its settings."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for method, epsilon, *rest in own:
        line = (method, *rest)
        alike = [other for other in found if other[0] == method]
        if line not in found:
            colour = "grey" if epsilon is None else _COLOURS[method]
            dash = _DASHES[(len(alike) + (METHODS.index(method) if epsilon is None else 0)) % len(_DASHES)]
            label = f"{method} {_told(rest[3:])}".translate(str.maketrans("", "", "[]'")).strip()
            found[line] = {"color": colour, "linestyle": dash, "label": label}
    return found


def keep(
    task: str, method: str, epsilon: float | None, made: torch.Tensor, labels: np.ndarray[Any, Any], *, usual: bool
) -> None:
    """Keep a panel's row, as many images of each label as fill it, in place of what was kept before.

    A row that was made by other settings or protocols than the usual ones is kept only where there is none.
    """
    place = _PANELS / f"{task} {METHODS.index(method)} {epsilon or 0:05g}.npy"
    if place.is_file() and not usual:
        return
    kinds = np.unique(labels)
    rows = np.concatenate([np.flatnonzero(labels == kind)[: max(1, _ROW // len(kinds))] for kind in kinds])
    pixels = ((made[torch.from_numpy(rows)] + 1) * 127.5).round().clamp(0, 255).byte().permute(0, 2, 3, 1)
    _PANELS.mkdir(parents=True, exist_ok=True)
    np.save(place, pixels.numpy(), allow_pickle=False)


def panels() -> None:
    """Draw a sheet of each task: a row of images for each method and ε, the last seed's."""
    kept = sorted(_PANELS.glob("*.npy"))
    if not kept:
        raise SystemExit("no images are kept here: run a cell first")
    for task in dict.fromkeys(path.stem.split(" ")[0] for path in kept):
        rows = []
        for path in (path for path in kept if path.stem.split(" ")[0] == task):
            _, number, epsilon = path.stem.split(" ")
            name = METHODS[int(number)] + (f", ε = {float(epsilon):g}" if float(epsilon) else "")
            rows.append((name, np.load(path, allow_pickle=False)))
        drawn = _PANELS / f"{task}.png"
        contact_sheet(rows, f"{task}: artificial images (δ = 1e-5 where there is an ε), and real ones").save(drawn)
        print(drawn)


def _lines(
    own: dict[tuple[Any, ...], Entries], name: str
) -> dict[tuple[Any, ...], dict[Any, tuple[float, float, float]]]:
    """Return each line's points: ε to least, mean and most over seeds."""
    found: dict[tuple[Any, ...], dict[Any, tuple[float, float, float]]] = {}
    for (method, epsilon, *rest), entries in own.items():
        if values := values_of(entries, name):
            found.setdefault((method, *rest), {})[epsilon] = min(values), statistics.mean(values), max(values)
    return found


def _mean_and_range(values: list[float], scale: float, digits: int) -> str:
    if not values:
        return "–"
    low, middle, high = (f"{scale * value:.{digits}f}" for value in (min(values), statistics.mean(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({low}–{high})"


def _told(rest: list[Any]) -> str:
    return ", ".join(str(word) for word in rest if word not in ("[]", False, None))
