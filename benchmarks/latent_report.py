"""What ``latent.py`` has measured: a table, curves over ε with intervals (figures 4, 5, 7, 8), panels of images (1)."""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import numpy as np
import torch

from doublure.data.images.sheets import contact_sheet
from lines import Lines, draw
from results import FIGURES, OUT, finished, mean_and_range, spread

Entries: TypeAlias = "list[dict[str, Any]]"
SCORES = ("accuracy", "precision", "recall", "f1")
PICTURES = ("classifier_score", "frechet", "frechet_by_label")
THROUGH_PUBLIC = ("inversion", "latentgan", "dpmi", "dpmi-free", "dpmi-inversion")
_PANELS, _ROW = OUT / "panels", 20
_TITLES = {
    "accuracy": "accuracy",
    "f1": "macro F1",
    "classifier_score": "classifier score",
    "frechet_by_label": "Fréchet distance, by label",
}
_LOOKS = {
    "real": ("private records", {"color": "grey", "linestyle": "-"}),
    "gan": ("gan, no privacy", {"color": "grey", "linestyle": "--"}),
    "inversion": ("inversion, no privacy", {"color": "grey", "linestyle": ":"}),
    "latentgan": ("latentgan", {"color": "#0b6e8f"}),
    "evolution": ("evolution", {"color": "#7d4f9e"}),
    "dpgan": ("dpgan", {"color": "#c8553d"}),
    "xie": ("Xie et al.", {"color": "#b58a1b"}),
    "dpmi": ("DPMI as published", {"color": "#5b7f3a"}),
    "dpmi-free": ("DPMI, no privacy", {"color": "grey", "linestyle": "-."}),
    "dpmi-inversion": ("DPMI's inversions, no privacy", {"color": "grey", "linestyle": (0, (1, 3))}),
}
METHODS = tuple(_LOOKS)
_TASKS = {
    "cifar10": "CIFAR-10's other classes",
    "emnist-mnist": "EMNIST letters to MNIST",
    "fashion": "Fashion-MNIST, odd to even",
    "mnist-odd-even": "MNIST, odd to even",
}


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
            figures = [mean_and_range([100 * value for value in values_of(entries, name)], ".1f") for name in SCORES]
            figures += [mean_and_range(values_of(entries, name), ".2f") for name in PICTURES]
            cpu = max(entry["cpu_seconds"] for entry in entries)  # of a seed that inverted, where another had no need
            row = (task, method, epsilon or "–", *figures, cpu, len(entries), _told(rest))
            print("|", " | ".join(str(x) for x in row), "|")


def _place(cell: tuple[tuple[Any, ...], Entries]) -> tuple[Any, ...]:
    """Return where a cell stands in the table: by task, method, settings, ε."""
    task, method, epsilon, *rest = cell[0]
    return task, METHODS.index(method), _told(rest), epsilon or 0


def curves() -> None:
    """Draw a picture of each task, and accuracy on all tasks of images beside each other, as the documentation has it.

    Each method is one line over ε with the range of its seeds, by its defaults; what has no ε is a band.
    """
    usual = {key: entries for key, entries in cells().items() if _usual(key)}
    tasks = {task: _lines(usual, task) for task in sorted({key[0] for key in usual})}
    for task, lines in tasks.items():
        panes = [(title, lines[name]) for name, title in _TITLES.items() if lines[name]]
        title = f"{_TASKS.get(task, task)}, δ = 1e-5, mean and range of the seeds"
        draw(panes, _LOOKS, title=title, over="ε", path=OUT / f"latent-{task}.png")
    panes = [(_TASKS.get(task, task), lines["accuracy"]) for task, lines in tasks.items() if lines["frechet_by_label"]]
    title = "accuracy on real test images, δ = 1e-5, mean and range of the seeds"
    draw(panes, _LOOKS, title=title, over="ε", path=FIGURES / "latent-accuracy.svg")


def _lines(usual: dict[tuple[Any, ...], Entries], task: str) -> dict[str, Lines]:
    """Return each figure's lines of a task: method to ε to least, mean and most over seeds.

    What goes through a public generator goes through the one that most of the task's cells have.
    """
    found: dict[str, Lines] = {name: {} for name in _TITLES}
    own = {key: entries for key, entries in usual.items() if key[0] == task}
    generators = Counter(key[7] for key in own if key[1] in THROUGH_PUBLIC)
    through = max(generators, key=lambda each: generators[each], default="[]")
    for (_, method, epsilon, _, _, _, _, public), entries in own.items():
        if method in THROUGH_PUBLIC and public != through:
            continue
        for name in _TITLES:
            if values := values_of(entries, name):
                found[name].setdefault(method, {})[epsilon] = spread(values)
    return found


def _usual(key: tuple[Any, ...]) -> bool:
    """Return whether a cell is an official figure of a method with its defaults, labels part of the record."""
    chosen, _, *others = key[6:]
    return not _held_out(key) and chosen == "[]" and not others


def _held_out(key: tuple[Any, ...]) -> bool:
    """Return whether a cell was tested on training data that was kept aside, as settings are chosen."""
    return bool(key[5])


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
        contact_sheet(rows, f"{task}: synthetic images (δ = 1e-5 where there is an ε), and real ones").save(drawn)
        print(drawn)


def _told(rest: list[Any]) -> str:
    return ", ".join(str(word) for word in rest if word not in ("[]", False, None))
