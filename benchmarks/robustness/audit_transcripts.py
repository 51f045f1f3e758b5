"""Pairs of worlds whose whole transcripts are told apart by their likelihood ratio: no reader can do better.

Each line is one fit in one of the worlds, with the operating system's noise, and a replay of it in the other, so that
the exact answers of both are known at every release, whatever earlier answers have led to. Their likelihood ratio is
what the best of all attackers computes, of all releases together; thresholds and bounds are those of ``audit_fits.py``.
"""

from __future__ import annotations

import functools
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from audit_fits import judged
from audit_replay import Neighbours, Release, fit, in_parts_of, recording, replaying
from scipy.stats import norm

import doublure as db
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, PureEvent
from doublure.private.queries.query import Answer

EPSILON, DELTA = 4.0, 1e-3
ALPHA = 1e-6
"""The chance that noise which is as large as was priced is called less."""
UNITS = 10


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one fit's transcript says.

    Attributes:
        there: Whether the unit was there.
        ratio: The log-likelihood ratio of "there" to "without".
        squares: Of the Gaussian noise that was added, over its priced variance, in sum.
        cells: How many numbers it was added to.
        moved: Σ ‖difference‖²/σ² of the releases with Gaussian noise: μ².
    """

    there: bool
    ratio: float
    squares: float
    cells: int
    moved: float


def line_of(pair: Neighbours, *, there: bool) -> Line:
    """Fit in one world, and replay in the other."""
    own, others = (pair.there, pair.without) if there else (pair.without, pair.there)
    with tempfile.TemporaryDirectory() as folder, in_parts_of(pair.parts):
        for name in ("one", "other"):
            (Path(folder) / name).mkdir()
        with recording() as kept:
            fit(own, pair.plan, Path(folder) / "one")
        with replaying(kept) as exact:
            fit(others, pair.plan, Path(folder) / "other")
    if not kept or len(kept) != len(exact):
        raise RuntimeError("a world was refused, or is asked less than the other")
    said = [_said(release, other, there=there) for release, other in zip(kept, exact, strict=True)]
    ratio, squares, cells, moved = (sum(each) for each in zip(*said, strict=True))
    return Line(there=there, ratio=ratio, squares=squares, cells=int(cells), moved=moved)


def _said(release: Release, other: Answer, *, there: bool) -> tuple[float, float, int, float]:
    """Return what one release adds to a line: ratio, squares, cells and μ²."""
    event, answer = release.access.event, release.answer
    unit = 1.0 if answer.unit is None else answer.unit
    noisy = np.asarray(release.noisy, dtype=np.float64).ravel()
    here, elsewhere = (np.asarray(each.total, dtype=np.float64).ravel() * unit for each in (answer, other))
    without, with_it = (elsewhere, here) if there else (here, elsewhere)
    if isinstance(event, PureEvent):
        scale = answer.sensitivity.l1 / event.epsilon
        return float((np.abs(noisy - without) - np.abs(noisy - with_it)).sum()) / scale, 0.0, 0, 0.0
    if isinstance(event, GaussianEvent):
        std = spread = event.noise_multiplier * answer.sensitivity.l2
    elif isinstance(event, DiscreteGaussianEvent):
        std, spread = event.scale, deviation_of_discrete(event.scale)
    else:
        raise TypeError(f"{release.access.purpose}: its likelihood is not known here")
    ratio = float(((noisy - without) ** 2 - (noisy - with_it) ** 2).sum()) / (2 * std**2)
    moved = float(((with_it - without) ** 2).sum()) / std**2
    return ratio, float(((noisy - here) ** 2).sum()) / spread**2, noisy.size, moved


@functools.cache
def deviation_of_discrete(scale: float) -> float:
    """Return the standard deviation of discrete Gaussian noise, which is below its parameter.

    Example:
        >>> round(deviation_of_discrete(5.0), 6), round(deviation_of_discrete(0.4), 3)
        (5.0, 0.369)
    """
    reach = np.arange(-math.ceil(12 * scale) - 1, math.ceil(12 * scale) + 2, dtype=np.float64)
    weights = np.exp(-(reach**2) / (2 * scale**2))
    return float(np.sqrt((weights * reach**2).sum() / weights.sum()))


def found(lines: Sequence[Line], plan: db.Plan) -> dict[str, Any]:
    """Return what transcripts show, beside what was claimed and what theory says.

    A claim is accused by Clopper and Pearson's bound, by too little noise, or by exact answers that move too far. The
    curve is no reason: a transcript that reaches its claim passes it in one of forty audits, at 95 % confidence.
    """
    inside, outside = (np.array([[line.ratio] for line in lines if line.there is world]) for world in (True, False))
    shown = judged(inside, outside, plan)
    cells = sum(line.cells for line in lines)
    variance, error = sum(line.squares for line in lines) / cells, math.sqrt(2 / cells)
    mu, most = math.sqrt(np.mean([line.moved for line in lines])), claimed_mu(plan)
    less = variance < 1 + norm.ppf(ALPHA) * error
    return shown | {
        "epsilon": plan.epsilon, "delta": plan.delta,
        "mean_without": float(outside.mean()), "mean_there": float(inside.mean()),
        "moved_mu": mu, "claimed_mu": most,
        "variance": variance, "variance_error": error,
        "accused": bool(shown["epsilon_shown"] > plan.epsilon or less or mu > most * (1 + ALPHA)),
    }  # fmt: skip


def claimed_mu(plan: db.Plan) -> float:
    """Return μ of the plan's Gaussian releases together; a μ-GDP transcript's ratios have the means ∓μ²/2."""
    total = 0.0
    for access in plan.touches:
        event = access.event
        if isinstance(event, GaussianEvent):
            total += event.steps / event.noise_multiplier**2
        elif isinstance(event, DiscreteGaussianEvent):
            total += event.tables * (event.records / event.scale) ** 2
    return math.sqrt(total)


# -- the worlds --------------------------------------------------------------------------------------------------------


def _pair(text: str, without: Any, there: Any, about: str, *, parts: int | None = None, **settings: Any) -> Neighbours:
    plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=EPSILON, delta=DELTA, **settings)
    return Neighbours(plan=plan, without=without, there=there, parts=parts, about=about)


def related() -> Neighbours:
    """Return patients who are alike, and one more that is in no cell of theirs and has forty stays of three."""
    stays = [{"nr": f"p{n}", "day": day, "ward": "a"} for n in range(UNITS) for day in (0, 1)]
    root = [{"nr": f"p{n}", "sex": "f"} for n in range(UNITS)]
    without = {"patients": pd.DataFrame(root), "stays": pd.DataFrame(stays)}
    more = [{"nr": "one more", "day": 3, "ward": "b"}] * 40
    there = {
        "patients": pd.DataFrame([*root, {"nr": "one more", "sex": "m"}]), "stays": pd.DataFrame([*stays, *more]),
    }  # fmt: skip
    return _pair(_RELATED, without, there, "forty stays of three", components=2, fit_steps=1, starts=1)


def series() -> Neighbours:
    """Return meters that are alike, and one more with five series of two."""
    rows = [
        {"m": f"m{n}", "series": str(n), "step": step, "x": 10.0, "g": "a"} for n in range(UNITS) for step in range(4)
    ]
    more = [
        {"m": "T", "series": f"T{n}", "step": step, "x": 99.0, "g": "b"} for n in range(5) for step in range(4)
    ]  # fmt: skip
    return _pair(
        _SERIES, pd.DataFrame(rows), pd.DataFrame([*rows, *more]), "five series of two", model="copula",
        grouped=("g",), own_tables=True,
    )  # fmt: skip


def images() -> Neighbours:
    """Return one image ten times, and one of another label."""
    draw = np.random.default_rng(0)
    base, more = (draw.integers(0, 255, (1, 8, 8, 3), dtype=np.uint8) for _ in range(2))
    many = np.repeat(base, UNITS, axis=0)
    without = {"images": many, "labels": np.zeros(UNITS, dtype=int)}
    there = {"images": np.concatenate([many, more]), "labels": np.append(np.zeros(UNITS, dtype=int), 1)}
    return _pair(_IMAGES, without, there, "another label", model="gaussian")


def partitions() -> Neighbours:
    """Return records that are alike, and a unit with six records of two that are far from them, some before them."""
    base = [{"p": f"p{n}", "a": "u", "c": 1.0} for n in range(UNITS)]
    more = [{"p": "T", "a": None, "c": 1e12}] * 3
    without, there = (pd.DataFrame(rows, dtype=object) for rows in (base, [*more, *base, *more]))
    return _pair(_TABLE, without, there, "six records of two", parts=3, components=2, fit_steps=1, starts=1)


_HEAD = f"doublure: 1\nmisfit: coerce\nunits: {UNITS + 2}\n"
_RELATED = f"""{_HEAD}kind: relational
unit: {{name: patient}}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id}}
      sex: {{type: category, values: [f, m], missing: false}}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 3
    order: day
    columns:
      nr: {{type: id}}
      day: {{type: integer, bounds: [0, 3], missing: false}}
      ward: {{type: category, values: [a, b], missing: false}}
"""
_SERIES = f"""{_HEAD}kind: series
unit: {{name: m, id: m, max_records: 2}}
series: {{length: 4, gaps: missing}}
channels:
  x: {{type: real, bounds: [0, 100], precision: 0, missing: true}}
attributes:
  g: {{type: category, values: [a, b], missing: false}}
"""
_IMAGES = f"""{_HEAD}kind: images
unit: {{name: person}}
images: {{shape: [8, 8, 3]}}
label: {{values: [0, 1]}}
"""
_TABLE = f"""doublure: 1
kind: table
misfit: coerce
units: {{learn: 0.5, magnitude: {UNITS + 2}}}
unit: {{name: p, id: p, max_records: 2}}
columns:
  p: {{type: id}}
  a: {{type: category, values: [u, v], other: o, missing: {{learn: 0.5}}}}
  c: {{type: real, bounds: {{learn: 0.8}}, precision: 1, missing: false}}
"""
CASES: Mapping[str, Callable[[], Neighbours]] = {
    "images": images, "series": series, "partitions": partitions, "related tables": related,
}  # fmt: skip
"""The cheapest first."""
