"""Whether a rotation bug is found from private samples (Triastcyn & Faltings 2022, §3.1, Figure 1).

    python benchmarks/inspection.py run --method guided --epsilon 1 --seeds 0
    python benchmarks/inspection.py run --method bayesgan --epsilon 2 --delta 1e-10 --right 4
    python benchmarks/inspection.py picture --method guided --epsilon 1 --seeds 1 --right 3
    python benchmarks/inspection.py table

Fits from a seed on, each with a noise of its own: ``--right`` of them on the training images as they are, and one on
images of which a quarter were turned left at random before the fit. Each right one is held against all the others, the
turned one against all, and both are inspected alone. A bug is found if "look turned left" stands out; nothing may
stand out where nothing is wrong. Right fits of neighbouring seeds are the same ones. Resumable; pages
lie beside the results. ``picture`` draws what a right fit and the turned one make, for the documentation.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

import doublure as db
from doublure.cli.options import settings
from doublure.data.images.sheets import contact_sheet, examples, png, rows_of
from doublure.evaluate import Inspection, inspect
from doublure.measures.images.alterations import altered
from doublure.results import p_value, percent, span
from fits import kept
from images import DELTA, schema_of
from real_images import images_of
from results import FIGURES, OUT, Case, finished, measure

BUG, SHARE = "turned left", 0.25
_A_SIDE, _DRAWN = 9, 1_000  # images of a class in the picture, and how many are drawn to have so many of each


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for seed in options.seeds:
        cell = (options.data, options.method, options.epsilon, seed, " ".join(options.set), f"{options.right} right")
        yield {"cell": cell}, partial(one, options, seed)


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


def figures(found: Inspection) -> dict[str, Any]:
    """Return what is kept of an inspection."""
    (turned,) = (entry for entry in found.suspicions if entry.key == BUG.replace(" ", "_"))
    return {
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
    if role == "turned":
        which = np.random.default_rng([seed, 1]).random(len(images)) < SHARE
        images = images.copy()
        images[which] = altered(images[which], BUG)
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
    print("| data | method | ε | seed | right | inspected | turned left | reference | p | found | also stands out |")
    print("|---|---|--:|--:|--:|---|--:|--:|--:|---|---|")
    for entry in finished("inspection"):
        data, method, epsilon, seed, _, *right = entry["cell"]
        of = right[0].removesuffix(" right") if right else 2
        for name, found in entry["inspections"].items():
            share = f"{percent(found['share'])} ({span(found['interval'], shares=True)})"
            against = percent(found["reference"])
            p = "–" if found["p"] is None else p_value(found["p"])
            others = ", ".join(key for key in found["stands_out"] if key != BUG.replace(" ", "_")) or "–"
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
    running.add_argument("--right", type=int, default=2, help="fits on the images as they are")
    running.add_argument("--set", nargs="*", default=[], help="settings of the method, as name=JSON")
    running.add_argument("--threads", type=int, default=2)


if __name__ == "__main__":
    main()
