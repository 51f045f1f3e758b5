"""Whether faults of a pipeline are found from private samples (Triastcyn & Faltings 2022, §2.1 and §3.1, Figure 1).

    python benchmarks/inspection.py run --method guided --epsilon 1 --seeds 0
    python benchmarks/inspection.py run --method guided --epsilon 1 --faults lost strangers slice swapped
    python benchmarks/inspection.py run --method bayesgan --epsilon 2 --delta 1e-10 --right 4
    python benchmarks/inspection.py picture --method guided --epsilon 1 --seeds 1 --right 3
    python benchmarks/inspection.py table

Fits from a seed on, each with a noise of its own: ``--right`` of them on the training images as they are, and one on
images of which a quarter were turned left at random before the fit. Each right one is held against all the others, the
turned one against all, and both are inspected alone. A bug is found if "look turned left" stands out; nothing may
stand out where nothing is wrong. Right fits of neighbouring seeds are the same ones. Resumable; pages
lie beside the results. ``picture`` draws what a right fit and the turned one make, for the documentation.

``--faults`` plants others in the place of the rotation, each of which is held against the right fits alone and is
found if its own sign stands out: a class of which nine in ten images are lost (bias, T6), a quarter that are letters
(images of no class, T3), one class that stands on its head (a slice, T4), a quarter with the next label (T1).
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch

import doublure as db
from doublure.cli.options import settings
from doublure.data.images.sheets import contact_sheet, examples, png, rows_of
from doublure.evaluate import Inspection, inspect
from doublure.measures.images.alterations import alter
from doublure.results import p_value, percent, span
from fits import kept
from images import DELTA, schema_of
from real_images import images_of
from results import FIGURES, OUT, Case, finished, measure

SHARE, LOST = 0.25, 0.9
_CLASS = 3  # which is lost, or stands on its head
Array: TypeAlias = "np.ndarray[Any, Any]"
_A_SIDE, _DRAWN = 9, 1_000  # images of a class in the picture, and how many are drawn to have so many of each


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is planted before a fit.

    Attributes:
        done: The doing of it, ``(images, labels, randomness) -> (images, labels)``; it may change what it is given.
        signs: Keys of the fault tests that name it, by their beginnings.
    """

    done: Callable[[Array, Array, np.random.Generator], tuple[Array, Array]]
    signs: tuple[str, ...]


def _turned(images: Array, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    which = rng.random(len(images)) < SHARE
    images[which] = alter(images[which], "turned left")
    return images, labels


def _lost(images: Array, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Take nine in ten images of a class away, and as many of the others twice: the number of images is public."""
    gone = (labels == _CLASS) & (rng.random(len(labels)) < LOST)
    left = np.flatnonzero(~gone)
    kept = np.concatenate([left, rng.choice(left[labels[left] != _CLASS], int(gone.sum()), replace=False)])
    return images[kept], labels[kept]


def _strangers(images: Array, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    letters, _ = images_of("emnist-letters", "train")
    which = np.flatnonzero(rng.random(len(images)) < SHARE)
    images[which] = letters[rng.choice(len(letters), len(which), replace=False)]
    return images, labels


def _slice(images: Array, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    del rng
    which = labels == _CLASS
    images[which] = alter(images[which], "upside down")
    return images, labels


def _swapped(images: Array, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    which = rng.random(len(images)) < SHARE
    return images, np.where(which, (labels + 1) % (labels.max() + 1), labels)


FAULTS = {
    "turned": Fault(done=_turned, signs=("turned_left",)),
    "lost": Fault(done=_lost, signs=(f"rare_{_CLASS}",)),
    "strangers": Fault(done=_strangers, signs=("label", "unlike")),
    "slice": Fault(done=_slice, signs=("upside_down", "flipped")),
    "swapped": Fault(done=_swapped, signs=("label",)),
}


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for seed in options.seeds:
        cell = (options.data, options.method, options.epsilon, seed, " ".join(options.set), f"{options.right} right")
        for fault in options.faults:
            if fault == "turned":
                yield {"cell": cell}, partial(one, options, seed)
            else:
                yield {"cell": (*cell, fault)}, partial(planted, options, seed, fault)


def planted(options: argparse.Namespace, seed: int, fault: str) -> dict[str, Any]:
    """Fit with a fault, and inspect against right fits."""
    start = time.process_time()
    right = [fitted(options, seed + place, "right") for place in range(options.right)]
    found = inspect(fitted(options, seed + options.right, fault), right, seed=seed)
    print(fault, "|", found, flush=True)
    return {
        "inspections": {fault: figures(found, FAULTS[fault].signs)},
        "cpu_seconds": round(time.process_time() - start),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def one(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Fit and inspect."""
    start = time.process_time()
    right = [fitted(options, seed + place, "right") for place in range(options.right)]
    turned = fitted(options, seed + options.right, "turned")
    inspections = {
        f"right {number}": inspect(each, [other for other in right if other is not each], seed=seed)
        for number, each in enumerate(right, start=1)
    }
    inspections["turned"] = inspect(turned, right, seed=seed)
    inspections["right 1, alone"] = inspect(right[0], seed=seed)
    inspections["turned, alone"] = inspect(turned, seed=seed)
    for name, found in inspections.items():
        title = f"{options.data} {options.method} {options.epsilon:g} {seed} {options.right} {name}"
        page = OUT / "inspections" / f"{title}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        found.save(page, page.with_suffix(".json"))
        print(page.stem, "|", found, flush=True)
    return {
        "inspections": {name: figures(found) for name, found in inspections.items()},
        "cpu_seconds": round(time.process_time() - start),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def figures(found: Inspection, signs: Sequence[str] = FAULTS["turned"].signs) -> dict[str, Any]:
    """Return what is kept of an inspection: the surest of a fault's own signs, and all that stands out."""
    own = [entry for entry in found.fault_tests if entry.key in signs]
    turned = min(own, key=lambda entry: (not entry.found, 1.0 if entry.p is None else entry.p))
    return {
        "sign": turned.key,
        "share": turned.share,
        "interval": turned.interval,
        "reference": turned.reference,
        "references": turned.references,
        "usual": turned.usual,
        "p": turned.p,
        "found": turned.found,
        "stands_out": [entry.key for entry in found.found],
    }


def fitted(options: argparse.Namespace, seed: int, role: str) -> db.Synthesizer:
    """Fit, or load what was fitted."""
    images, labels = images_of(options.data, "train")
    if role != "right":
        images, labels = FAULTS[role].done(images.copy(), labels.copy(), np.random.default_rng([seed, 1]))
    plan = db.plan(
        schema_of(options.data, images, labels),
        method=options.method,
        epsilon=options.epsilon,
        delta=options.delta,
        **settings(options.set),
    )
    cell = ("inspection", options.data, options.method, options.epsilon, options.set, seed, role)
    return kept(plan, {"images": images, "labels": labels}, cell, seed)[0]


def picture(options: argparse.Namespace) -> None:
    """Draw what a right fit and the turned one make, beside each other."""
    seed, sides = options.seeds[0], []
    for place, role in ((0, "right"), (options.right, "turned")):
        syn = fitted(options, seed + place, role)
        made = examples(syn.sample(_DRAWN, seed=seed), syn.schema, _A_SIDE)
        sides.append(rows_of(made, syn.schema.label.domain))
    rows = [
        (name, np.concatenate([own, np.full_like(own[:1], 255), other]))
        for (name, own), (_, other) in zip(*sides, strict=True)
    ]
    fit = f"synthetic images of {options.method}, ε = {options.epsilon:g}, δ = {options.delta:g}"
    title = f"Two fits, {fit}: on {options.data} as it is, and after a quarter of it was turned left"
    path = FIGURES / f"rotation-{options.method}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png(contact_sheet(rows, title)))
    print(path)


def table() -> None:
    """Print the results as Markdown."""
    print("| data | method | ε | seed | right | inspected | its sign | reference | p | found | also stands out |")
    print("|---|---|--:|--:|--:|---|--:|--:|--:|---|---|")
    for entry in finished("inspection"):
        data, method, epsilon, seed, _, *right = entry["cell"]
        of = right[0].removesuffix(" right") if right else 2
        for name, found in entry["inspections"].items():
            share = f"{percent(found['share'])} ({span(found['interval'], shares=True)})"
            against = percent(found["reference"])
            p = "–" if found["p"] is None else p_value(found["p"])
            others = ", ".join(key for key in found["stands_out"] if key != found.get("sign", "turned_left")) or "–"
            said = "yes" if found["found"] else "no"
            cells = (data, method, epsilon, seed, of, name, share, against, p, said, others)
            print("|", " | ".join(map(str, cells)), "|")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for running in (verbs.add_parser("run"), verbs.add_parser("picture")):
        _chosen(running)
    verbs.add_parser("table")
    options = parser.parse_args()
    if options.verb == "table":
        return table()
    if options.right < 2:
        parser.error("--right: runs are compared with one another; take at least 2")
    torch.set_num_threads(options.threads)
    return picture(options) if options.verb == "picture" else measure("inspection", cases(options))


def _chosen(running: argparse.ArgumentParser) -> None:
    running.add_argument("--data", default="mnist")
    running.add_argument("--method", default="guided")
    running.add_argument("--epsilon", type=float, default=1.0)
    running.add_argument("--delta", type=float, default=DELTA)
    running.add_argument("--seeds", type=int, nargs="+", default=[0])
    running.add_argument("--faults", nargs="+", choices=list(FAULTS), default=["turned"])
    running.add_argument("--right", type=int, default=2, help="fits on the images as they are")
    running.add_argument("--set", nargs="*", default=[], help="settings of the method, as name=JSON")
    running.add_argument("--threads", type=int, default=2)


if __name__ == "__main__":
    main()
