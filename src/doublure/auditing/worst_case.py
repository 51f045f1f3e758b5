"""The worst case, for any method: four records or five, fitted again and again, looked at from outside.

For each kind of data there are two neighbours: four records that are all alike, and the same with a fifth that is as
different as can be, in what is learned and in what it is learned under. Eight cells of what is sampled are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from doublure.attack import worst_case
from doublure.attack.attack_data import Refit, Units
from doublure.attack.results import Claim
from doublure.auditing.white_box import refitting
from doublure.data.images import Images
from doublure.data.relational import RelatedRows
from doublure.data.series import Series
from doublure.encode.columns import Floats
from doublure.errors import SettingError
from doublure.methods import registry as methods
from doublure.planning import plan as planned
from doublure.report.audit import AttackReport
from doublure.results import versions
from doublure.schema import Schema
from doublure.support.extras import require_torch
from doublure.support.progress import Progress, following

_ALIKE, _SAMPLED, _CELLS, _SHADES = 4, 200, 8, 4
_SIDE, _LENGTH = 8, 4
_COLUMNS = ("a", "b", "c")


@dataclass(frozen=True, kw_only=True)
class NeighbouringSets:
    """Both neighbouring data sets of one kind of data.

    Attributes:
        schema: What is public.
        records: Which records are the other kind, ``(N,)``, to the records.
        cells: What is sampled to the cell of each record, ``(N,)`` from 0 to 7.
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
    """Fit a method to four records and to five, many times, and hold what is sampled against its claim.

    Args:
        method: Its name, as ``--method`` takes it.
        kind: Of data: ``table``, ``images``, ``series`` or ``relational``.
        epsilon: The ε to claim.
        delta: The δ to claim.
        runs: Runs on each data set.
        seed: Fixes every random choice but privacy noise.
        progress: Receives progress events; None: a line where it is seen, False: nothing.
        settings: Of the method; few steps make an audit quick, and what they cost is in the plan as ever.

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
    make = partial(_counts, sides, refitting(plan.schema.resolve({}), plan, plan.guarantee), seed)
    claim = Claim.of(plan.guarantee)
    with following(progress, "audit") as listener:
        found = worst_case.audit(make, claim, runs=runs, progress=listener)
    return AttackReport(claim=claim, attacks=(found,), seed=seed, versions=versions())


def _counts(sides: NeighbouringSets, refit: Refit, seed: int, fifth: bool, number: int) -> Floats:
    """Return how often each of the eight cells is sampled, ``(8,)``."""
    # The public seed differs from run to run and not from side to side: an attacker knows it.
    drawn = refit(sides.side(fifth), seed + number).sample(_SAMPLED, number)
    return np.bincount(sides.cells(drawn), minlength=_CELLS).astype(np.float64)


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
    """Return units with two rows each, all of one kind."""
    number = np.arange(len(other))
    below = {"k": np.repeat(number, 2), "n": np.tile([0, 1], len(other)), "c": np.repeat(other, 2)}
    return {"units": pd.DataFrame({"k": number, "a": other, "b": other}), "rows": pd.DataFrame(below)}


def _of_related(drawn: RelatedRows) -> Units:
    """Return cells of a unit's columns, and of whether any of its rows is of the other kind."""
    owner, told = drawn.parents["rows"], _yes(drawn.frames["rows"]["c"])
    any_of = np.zeros(len(drawn), dtype=np.int64)
    np.maximum.at(any_of, owner, told)
    root = drawn.frames["units"]
    codes: Units = _yes(root["a"]) + 2 * _yes(root["b"]) + 4 * any_of
    return codes


def _yes(cells: pd.Series[Any]) -> Units:
    """Return 1 where a truth value is true, as it is read or drawn."""
    found: Units = (cells.astype(str).str.lower() == "true").to_numpy().astype(np.int64)
    return found


def _shades(places: Floats, told: np.ndarray[Any, Any]) -> Units:
    """Return cells of where records are from 0 to 1, in quarters, and of what they are told to be."""
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
"""Kind of data to its neighbouring sets."""
