"""Worst-case audit of a method by many runs on neighbouring data sets of four and five records.

The attacker chose the data. Four records are alike; one of two data sets has a fifth that is as different as possible,
in its content and its conditions. The method is fitted a thousand times on each. From the synthetic records alone, by
the frequency of each of eight cells, the attacker guesses the data set. The audit is black-box, so it covers every
method, and everything a method does to data, not the noise alone (Ganev, Annamalai, De Cristofaro 2024, who found six
of six PATE-GANs to leak more than they claim).

Some of the runs train a classifier, some choose its threshold, and the rest give the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from doublure.attack import bounds
from doublure.attack.attack_data import Refit, Units
from doublure.attack.results import ABSENCE, LOWER_BOUND, AttackResult, Claim, RateEstimate, ThreatModel
from doublure.auditing.white_box import make_refit
from doublure.data.images import Images
from doublure.data.relational import RelatedRows
from doublure.data.series import Series
from doublure.errors import SettingError, counted
from doublure.methods import registry as methods
from doublure.planning import plan as planned
from doublure.report.audit import AttackReport
from doublure.results import versions
from doublure.schema import Schema
from doublure.support.arrays import Floats
from doublure.support.extras import require_torch
from doublure.support.progress import Progress, SilentProgress, listen

THREAT_MODEL = ThreatModel(
    attack="worst-case",
    name="Distinguishing four rows from five",
    family="audit",
    holds=("the data, but for whether it has the fifth row", "the method and its settings", "the synthetic rows"),
    does="Counts how often each of the eight possible rows occurs, and asks a classifier trained on other runs.",
    success="Runs with and without the record are distinguished more often than the claim allows.",
    shows="With a confidence of 95 %, that a method leaks more than it claims, wherever the fault lies.",
    cannot="That it leaks no more: synthetic rows show far less than the gradients of the training.",
    reference="Ganev et al. 2024; Annamalai et al. 2024; bounds: Dong, Roth, Su 2022 by Clopper–Pearson",
)

FEWEST = 20
_TRAINED, _CHOSEN = 0.4, 0.2

Make = Callable[[bool, int], Floats]
"""Whether the fifth row is there, and the number of the run -> counts ``(8,)`` of synthetic rows."""

_ALIKE, _SAMPLED, _CELLS, _SHADES = 4, 200, 8, 4
_SIDE, _LENGTH = 8, 4
_COLUMNS = ("a", "b", "c")


@dataclass(frozen=True, kw_only=True)
class NeighbouringSets:
    """Two neighbouring data sets of one kind of data.

    Attributes:
        schema: The public facts.
        records: Mask of the records of the other kind, ``(N,)`` -> the records.
        cells: Sampled records -> the cell of each, ``(N,)`` from 0 to 7.
    """

    schema: Schema
    records: Callable[[np.ndarray[Any, np.dtype[np.bool_]]], Any]
    cells: Callable[[Any], Units]

    def side(self, fifth: bool) -> Any:
        """Return the records of one of the data sets."""
        return self.records(np.arange(_ALIKE + fifth) >= _ALIKE)


def audit_method(
    method: str,
    *,
    kind: str = "table",
    epsilon: float = 4.0,
    delta: float = 1e-5,
    runs: int = 1000,
    seed: int = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> AttackReport:
    """Fit a method to four records and to five, many times, and test its claim on the samples.

    Args:
        method: Its name, as ``--method`` takes it.
        kind: Kind of data: ``table``, ``images``, ``series`` or ``relational``.
        epsilon: The ε to claim.
        delta: The δ to claim.
        runs: Runs on each data set.
        seed: Fixes every random choice but privacy noise.
        progress: Receives progress events; None: a line where it is seen, False: nothing.
        settings: Settings of the method; few steps make an audit quick, and their cost is in the plan as ever.

    Raises:
        SettingError: The method claims no ε, a setting is wrong, or there are too few runs.
    """
    if kind not in NEIGHBOURING_SETS:
        raise SettingError(
            f"there is no kind {kind!r}", field="kind", remedy=f"use one of: {', '.join(NEIGHBOURING_SETS)}"
        )
    sides = NEIGHBOURING_SETS[kind]
    plan = planned(sides.schema, method=method, epsilon=epsilon, delta=delta, **settings)
    if methods.method(plan.method).needs_torch(plan.schema, plan.settings):
        require_torch(f"method {plan.method}")
    if plan.guarantee.epsilon is None:
        raise SettingError("claims no ε", field="method", remedy="audit a method of kind dp or bayesian-dp")
    make = partial(_counts, sides, make_refit(plan.schema.resolve({}), plan, plan.guarantee), seed)
    claim = Claim.of(plan.guarantee)
    with listen(progress, "audit") as listener:
        found = audit_runs(make, claim, runs=runs, progress=listener)
    return AttackReport(claim=claim, attacks=(found,), seed=seed, versions=versions())


def _counts(sides: NeighbouringSets, refit: Refit, seed: int, fifth: bool, number: int) -> Floats:
    """Return the number of samples in each of the eight cells, ``(8,)``."""
    # The public seed differs between runs but not between sides: an attacker knows it.
    drawn = refit(sides.side(fifth), seed + number).sample(_SAMPLED, number)
    return np.bincount(sides.cells(drawn), minlength=_CELLS).astype(np.float64)


def audit_runs(
    make: Make, claim: Claim, *, runs: int = 1000, confidence: float = 0.95, progress: Progress | None = None
) -> AttackResult:
    """Audit a method by many runs on both data sets.

    Args:
        make: Fits to one of the data sets and counts the samples.
        claim: What the method claims.
        runs: Runs on each data set.
        confidence: Confidence of the bounds.
        progress: Receives progress events.

    Raises:
        SettingError: Too few runs to say anything.
    """
    if runs < FEWEST:
        raise SettingError(f"must be at least {FEWEST}", field="runs", remedy="use 1000 or more")
    listener = progress or SilentProgress()
    listener.stage("audit by many runs", 2 * runs)
    sides: list[list[Floats]] = [[], []]
    for number in range(runs):
        for side in (0, 1):
            sides[side].append(make(bool(side), number))
        listener.at(2 * (number + 1))
    return judge_counts(np.stack(sides[1]), np.stack(sides[0]), claim, confidence)


def judge_counts(inside: Floats, outside: Floats, claim: Claim, confidence: float = 0.95) -> AttackResult:
    """Return the result of counts from both sides.

    Args:
        inside: ``(R, 8)`` counts with the fifth row.
        outside: ``(R, 8)`` counts without.
        claim: The claim of the method.
        confidence: Confidence of the bounds.
    """
    from sklearn.ensemble import RandomForestClassifier

    trained, chosen = int(_TRAINED * len(inside)), int((_TRAINED + _CHOSEN) * len(inside))
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
    answers = np.repeat([1, 0], trained)
    forest.fit(np.concatenate([inside[:trained], outside[:trained]]), answers)
    scores = [np.asarray(forest.predict_proba(side[trained:])[:, 1]) for side in (inside, outside)]
    delta = 0.0 if claim.delta is None else claim.delta
    aside = chosen - trained

    def shown(threshold: float, first: int, last: int | None) -> float:
        rates = bounds.error_rates(scores[0][first:last], scores[1][first:last], threshold, confidence)
        return bounds.epsilon_from_rates(rates.upper_false_positives, rates.upper_false_negatives, delta)

    candidates = np.unique(np.concatenate([score[:aside] for score in scores]))
    threshold = float(max(candidates, key=lambda at: shown(float(at), 0, aside)))
    rates = bounds.error_rates(scores[0][aside:], scores[1][aside:], threshold, confidence)
    lower = shown(threshold, aside, None)
    mu = bounds.gaussian_mu(rates.upper_false_positives, rates.upper_false_negatives)
    judges = len(inside) - chosen
    return AttackResult(
        threat_model=THREAT_MODEL,
        measure=LOWER_BOUND,
        value=lower,
        desired="below the claim",
        rates=(
            RateEstimate(name="false alarms", value=rates.false_positives),
            RateEstimate(name="missed", value=rates.false_negatives),
        ),
        claim=claim,
        lower_bound=lower,
        alarm=claim.epsilon is not None and lower > claim.epsilon,
        notes=(
            f"{counted(len(inside), 'run')} on each side; the bounds rest on {judges:,} of them.",
            f"If the trade-off were Gaussian: ε ≥ {bounds.gaussian_epsilon(mu, max(delta, 1e-12)):.2f}.",
            f"A perfect attack would have shown ε ≥ {_perfect(judges, confidence, delta):.2f}.",
            ABSENCE,
        ),
    )


def _perfect(runs: int, confidence: float, delta: float) -> float:
    least = bounds.upper_rate(0, runs, (1 - confidence) / 2)
    return bounds.epsilon_from_rates(least, least, delta)


# -- tables, images, series ------------------------------------------------------------------------------------------


def _schema(**facts: Any) -> Schema:
    return Schema.from_plain({"doublure": 1, "units": _ALIKE, **facts})


def _rows(other: np.ndarray[Any, np.dtype[np.bool_]]) -> pd.DataFrame:
    return pd.DataFrame({name: other for name in _COLUMNS})


def _of_rows(rows: pd.DataFrame) -> Units:
    codes: Units = rows[list(_COLUMNS)].astype(np.int64).to_numpy() @ (2 ** np.arange(len(_COLUMNS)))
    return codes


def _images(other: np.ndarray[Any, np.dtype[np.bool_]]) -> Images:
    pixels = np.where(other[:, None, None, None], 255, 0).astype(np.uint8)
    labels = pd.Series(pd.Categorical(other.astype(str), categories=["False", "True"]))
    return Images(images=np.broadcast_to(pixels, (len(other), _SIDE, _SIDE, 1)).copy(), labels=labels)


def _of_images(images: Images) -> Units:
    told = np.zeros(len(images)) if images.labels is None else (images.labels == "True").to_numpy()
    return _shades(images.images.mean(axis=(1, 2, 3)) / 255, told)


def _series(other: np.ndarray[Any, np.dtype[np.bool_]]) -> Series:
    values = np.repeat(other.astype(np.float64)[:, None, None], _LENGTH, axis=1)
    return Series(values=values, channels=("a",), attributes=pd.DataFrame({"b": other}))


def _of_series(series: Series) -> Units:
    return _shades(series.channel("a").mean(axis=1), series.attributes["b"].astype(bool).to_numpy())


def _related(other: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, pd.DataFrame]:
    """Return units with two equal rows each."""
    number = np.arange(len(other))
    below = {"k": np.repeat(number, 2), "n": np.tile([0, 1], len(other)), "c": np.repeat(other, 2)}
    return {"units": pd.DataFrame({"k": number, "a": other, "b": other}), "rows": pd.DataFrame(below)}


def _of_related(drawn: RelatedRows) -> Units:
    """Return cells by a unit's columns, and by whether any of its rows is of the other kind."""
    owner, told = drawn.parents["rows"], _yes(drawn.frames["rows"]["c"])
    any_of = np.zeros(len(drawn), dtype=np.int64)
    np.maximum.at(any_of, owner, told)
    root = drawn.frames["units"]
    codes: Units = _yes(root["a"]) + 2 * _yes(root["b"]) + 4 * any_of
    return codes


def _yes(cells: pd.Series[Any]) -> Units:
    found: Units = (cells.astype(str).str.lower() == "true").to_numpy().astype(np.int64)
    return found


def _shades(places: Floats, told: np.ndarray[Any, Any]) -> Units:
    """Return cells by the records' positions from 0 to 1, in quarters, and by their conditions."""
    shades: Units = np.minimum((places * _SHADES).astype(np.int64), _SHADES - 1)
    return shades + _SHADES * told.astype(np.int64)


_BOOLEAN = {"type": "boolean", "missing": False}
_ID = {"type": "id"}
_PLACE = {"type": "integer", "bounds": [0, 1], "missing": False}
_NEIGHBOURING_SETS = (
    NeighbouringSets(
        schema=_schema(kind="table", columns=dict.fromkeys(_COLUMNS, _BOOLEAN)), records=_rows, cells=_of_rows
    ),
    NeighbouringSets(
        schema=_schema(
            kind="images",
            images={"shape": [_SIDE, _SIDE, 1]},
            label={"values": ["False", "True"], "roles": ["condition"]},
        ),
        records=_images,
        cells=_of_images,
    ),
    NeighbouringSets(
        schema=_schema(
            kind="series",
            series={"time": "t", "length": _LENGTH, "step": "1h", "timezone": "UTC", "gaps": "drop"},
            channels={"a": {"type": "real", "bounds": [0, 1], "missing": False}},
            attributes={"b": _BOOLEAN},
        ),
        records=_series,
        cells=_of_series,
    ),
    NeighbouringSets(
        schema=_schema(
            kind="relational",
            tables={
                "units": {"key": "k", "columns": {"k": _ID, "a": _BOOLEAN, "b": _BOOLEAN}},
                "rows": {
                    "parent": "units",
                    "foreign_key": "k",
                    "max_children": 2,
                    "order": "n",
                    "columns": {"k": _ID, "n": _PLACE, "c": _BOOLEAN},
                },
            },
        ),
        records=_related,
        cells=_of_related,
    ),
)
NEIGHBOURING_SETS: Mapping[str, NeighbouringSets] = {sets.schema.kind: sets for sets in _NEIGHBOURING_SETS}
"""Kind of data -> its neighbouring sets."""
