"""Whether faults of a pipeline are found from private samples (Triastcyn & Faltings 2022, §2.1 and §3.1, Figure 1).

    python benchmarks/inspection.py run --method guided --epsilon 1 --seeds 0
    python benchmarks/inspection.py run --method bayesgan --epsilon 2 --delta 1e-10 --right 4
    python benchmarks/inspection.py curve --data digits --epsilon 10 --right 12 --set 'channels=[32,16,8]' batch=100
    python benchmarks/inspection.py picture --method guided --epsilon 1 --seeds 1 --right 3
    python benchmarks/inspection.py table

Fits from a seed on, each with a noise of its own: ``--right`` of them on the training images as they are, and one on
images of which a quarter were turned left at random before the fit. Each right one is held against all the others, the
turned one against all, and both are inspected alone. A bug is found if "look turned left" stands out; nothing may
stand out where nothing is wrong. Right fits of neighbouring seeds are the same ones. Resumable; pages
lie beside the results. ``picture`` draws what a right fit and the turned one make, for the documentation.

``curve`` plants each fault in several shares: a part that is turned left (T2), with the next label (T1), or letters
(T3), one class of which a part stands on its head (a slice, T4) or is lost (bias, T6). Classifiers learn from the
first right fit. Each other fit is held against it and ten choices of four more, and found if its own sign stands out.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import torch
from PIL import Image

import doublure as db
from doublure.cli.options import settings
from doublure.data.images.sheets import contact_sheet, examples, png, rows_of
from doublure.evaluate import Inspection, inspect
from doublure.evaluate.inspection import LOOKED_AT
from doublure.measures.fault_tests import FaultStatistic, decide
from doublure.measures.images.alterations import alter
from doublure.measures.images.fault_tests import InspectionSets, fault_statistics
from doublure.measures.images.feature_extractors import encode_labels
from doublure.results import p_value, percent, span
from fits import kept
from images import DELTA, private_name, schema_of
from real_images import images_of
from results import FIGURES, OUT, Case, finished, measure

SHARE = 0.25
_CHOICES = 10
_CLASS = 3  # which is lost, or stands on its head
Array: TypeAlias = "np.ndarray[Any, Any]"
_A_SIDE, _DRAWN = 9, 1_000  # images of a class in the picture, and how many are drawn to have so many of each


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is planted before a fit.

    Attributes:
        done: The doing of it, ``(images, labels, share, randomness) -> (images, labels)``; it may change what it is
            given. The share is of all images, or of the class that is lost or stands on its head.
        signs: Keys of the fault tests that name it, by their beginnings.
        shares: Those of the curve, the largest first.
    """

    done: Callable[[Array, Array, float, np.random.Generator], tuple[Array, Array]]
    signs: tuple[str, ...]
    shares: tuple[float, ...]


def _turned(images: Array, labels: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    which = rng.random(len(images)) < share
    images[which] = alter(images[which], "turned left")
    return images, labels


def _lost(images: Array, labels: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Take so many images of a class away, and as many of the others twice: the number of images is public."""
    gone = (labels == _CLASS) & (rng.random(len(labels)) < share)
    left = np.flatnonzero(~gone)
    kept = np.concatenate([left, rng.choice(left[labels[left] != _CLASS], int(gone.sum()), replace=False)])
    return images[kept], labels[kept]


def _strangers(images: Array, labels: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    letters, _ = images_of("emnist-letters", "train")
    which = np.flatnonzero(rng.random(len(images)) < share)
    letters = letters[rng.choice(len(letters), len(which), replace=False)]
    images[which] = _resized(letters, images.shape[1:3])
    return images, labels


def _resized(images: Array, size: tuple[int, int]) -> Array:
    if images.shape[1:3] == size:
        return images
    small = [np.asarray(Image.fromarray(each[..., 0]).resize(size[::-1], Image.Resampling.BOX)) for each in images]
    return np.stack(small)[..., None]


def _slice(images: Array, labels: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    which = (labels == _CLASS) & (rng.random(len(labels)) < share)
    images[which] = alter(images[which], "upside down")
    return images, labels


def _swapped(images: Array, labels: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    which = rng.random(len(images)) < share
    return images, np.where(which, (labels + 1) % (labels.max() + 1), labels)


FAULTS = {
    "turned": Fault(done=_turned, signs=("turned_left",), shares=(0.25, 0.1, 0.05)),
    "swapped": Fault(done=_swapped, signs=("label",), shares=(0.25, 0.1, 0.05)),
    "strangers": Fault(done=_strangers, signs=("label", "unlike"), shares=(0.5, 0.25, 0.1)),
    "slice": Fault(done=_slice, signs=("upside_down", "flipped"), shares=(1.0, 0.5, 0.25)),
    "lost": Fault(done=_lost, signs=(f"rare_{_CLASS}",), shares=(1.0, 0.9, 0.5)),
}


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for seed in options.seeds:
        cell = _cell(options, seed)
        yield {"cell": cell}, partial(one, options, seed)


def curve(options: argparse.Namespace) -> Iterator[Case]:
    """Yield how much of each fault is found, beside how often correct fits are flagged."""
    (seed,) = options.seeds
    cell = _cell(options, seed)
    yield {"cell": (*cell, f"curve of {options.held}")}, partial(points, options, seed)


def _cell(options: argparse.Namespace, seed: int) -> tuple[Any, ...]:
    """Return what tells the fits of a seed from all others."""
    name, chosen = private_name(options), " ".join(options.set)
    return (name, options.method, options.epsilon, seed, chosen, f"{options.right} right")


def points(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Fit, look at all fits by classifiers of the first, and hold each against choices of correct ones.

    A point of the curve is the share of the choices in which a fault's own sign is found. A correct fit is flagged
    where anything is found.
    """
    start = time.process_time()
    right = [fitted(options, seed + place, "right") for place in range(options.right)]
    planted = {
        (name, share): fitted(options, seed + options.right + place, name, share)
        for name, fault in FAULTS.items()
        for place, share in enumerate(fault.shares)
        if name in options.faults
    }
    runs = [*right[1:], *planted.values()]
    schema = right[0].schema
    drawn = [each.draw(LOOKED_AT, seed=seed + 1 + place) for place, each in enumerate(runs)]
    first = right[0].draw(3 * LOOKED_AT, seed=seed)
    coded = [(each.in_bytes, encode_labels(schema, each)) for each in (first, *drawn)]
    whole, codes = coded[0]
    training = (whole.take(slice(2 * LOOKED_AT)), codes[: 2 * LOOKED_AT])
    rest = (whole.take(slice(2 * LOOKED_AT, None)), codes[2 * LOOKED_AT :])
    labels = tuple(str(value) for value in schema.label.domain)
    sets = InspectionSets(training=training, inspected=coded[1], right=(rest, *coded[2:]), labels=labels)
    signs = fault_statistics(sets, seed)
    places = {key: 2 + place for place, key in enumerate(planted, start=len(right) - 2)}
    others = [0, *range(2, len(right))]  # of all correct fits but the first, their places among the sets
    found = {
        f"{name} {share:g}": _held(signs, places[name, share], others, options.held, FAULTS[name].signs)
        for name, share in planted
    }
    flagged = [
        _held(signs, place, [other for other in others if other != place], options.held, ("",)) for place in others
    ]
    return {
        "found": found,
        "flagged": round(float(np.mean([each["found"] for each in flagged])), 4),
        "correct_fits": len(flagged),
        "ever_flagged": sum(each["found"] > 0 for each in flagged),
        "choices": sum(each["choices"] for each in flagged),
        "tests": len(signs),
        "cpu_seconds": round(time.process_time() - start),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def _held(
    signs: Mapping[str, FaultStatistic], place: int, others: Sequence[int], held: int, own: Sequence[str]
) -> dict[str, Any]:
    """Return how often a fit is found against the first correct fit and choices of so many others, ten at most."""
    hits, limits = list[bool](), list[float]()
    choices = list(combinations(others, held - 1))
    drawn = np.random.default_rng(place).permutation(len(choices))[:_CHOICES]
    for chosen in [choices[at] for at in drawn]:
        picked = {
            key: replace(sign, shown=[sign.shown[at] for at in (place, 1, *chosen)]) for key, sign in signs.items()
        }
        tests = [test for test in decide(picked, tested=True) if test.key.startswith(tuple(own))]
        hits.append(any(test.found for test in tests))
        best = min(tests, key=lambda test: test.p if test.p is not None else 1.0)
        limits.append(best.usual or 0.0)
    return {
        "found": round(float(np.mean(hits)), 4),
        "choices": len(hits),
        "sign": best.key,
        "share": best.share,
        "right": [round(signs[best.key].shares[other], 4) for other in others],
        "limit": round(float(np.median(limits)), 4),
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


def fitted(options: argparse.Namespace, seed: int, role: str, share: float = SHARE) -> db.Synthesizer:
    """Fit, or load what was fitted."""
    images, labels = images_of(options.data, "train")
    images, labels = images[: options.private], labels[: options.private]
    if role != "right":
        images, labels = FAULTS[role].done(images.copy(), labels.copy(), share, np.random.default_rng([seed, 1]))
    plan = db.plan(
        schema_of(options.data, images, labels),
        method=options.method,
        epsilon=options.epsilon,
        delta=options.delta,
        **settings(options.set),
    )
    cell = ("inspection", private_name(options), options.method, options.epsilon, options.set, seed, role)
    cell = (*cell, share) if share != SHARE else cell
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
    rows = finished("inspection")
    for entry in [row for row in rows if "inspections" in row]:
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
    print("\n| data | ε | planted | its sign | in the fit | in right fits | found beyond | found |")
    print("|---|--:|---|---|--:|--:|--:|--:|")
    for entry in [row for row in rows if "inspections" not in row]:
        data, _, epsilon, *_ = entry["cell"]
        for planted, seen in entry["found"].items():
            right = f"{percent(min(seen['right']))} to {percent(max(seen['right']))}"
            cells = (data, epsilon, planted, seen["sign"], percent(seen["share"]), right, percent(seen["limit"]))
            print("|", " | ".join(map(str, (*cells, percent(seen["found"])))), "|")
        print(f"| {data} | {epsilon} | nothing | | | | | {percent(entry['flagged'])} |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    for running in (verbs.add_parser("run"), verbs.add_parser("curve"), verbs.add_parser("picture")):
        _chosen(running)
    verbs.add_parser("table")
    options = parser.parse_args()
    if options.verb == "table":
        return table()
    if options.right < 2:
        parser.error("--right: runs are compared with one another; take at least 2")
    torch.set_num_threads(options.threads)
    if options.verb == "picture":
        return picture(options)
    return measure("inspection", curve(options) if options.verb == "curve" else cases(options))


def _chosen(running: argparse.ArgumentParser) -> None:
    running.add_argument("--data", default="mnist")
    running.add_argument("--private", type=int, default=None, help="only the first so many training images are private")
    running.add_argument("--method", default="guided")
    running.add_argument("--epsilon", type=float, default=1.0)
    running.add_argument("--delta", type=float, default=DELTA)
    running.add_argument("--seeds", type=int, nargs="+", default=[0])
    running.add_argument("--faults", nargs="*", choices=list(FAULTS), default=list(FAULTS), help="of the curve")
    running.add_argument("--held", type=int, default=5, help="of the curve: correct fits that each is held against")
    running.add_argument("--right", type=int, default=2, help="fits on the images as they are")
    running.add_argument("--set", nargs="*", default=[], help="settings of the method, as name=JSON")
    running.add_argument("--threads", type=int, default=2)


if __name__ == "__main__":
    main()
