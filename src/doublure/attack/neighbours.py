"""Search for copies among the nearest neighbours of synthetic records; not a privacy measure.

Distance to the closest record (DCR) and the ratio of the nearest to the second nearest (NNDR) are common in practice.
They pass where records leak, because the average says nothing of outliers (Yao et al. 2025), and publishing them leaks
by itself (Ganev and De Cristofaro 2023). Beside a holdout they do show one thing: a generator that copies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from doublure.attack.attack_data import AttackData
from doublure.attack.results import AttackResult, Picture, RateEstimate, ThreatModel
from doublure.data.images import Images
from doublure.data.images.sheets import contact_sheet, png
from doublure.data.relational import RelatedRows
from doublure.data.series import Series
from doublure.errors import counted
from doublure.intervals import Interval, wilson
from doublure.measures.divergence import Rows, nearest
from doublure.schema.columns import Column
from doublure.schema.columns.spelling import TextMarks
from doublure.schema.kinds import ByKind
from doublure.support.arrays import Floats
from doublure.support.frames import with_columns

THREAT_MODEL = ThreatModel(
    attack="neighbours",
    name="Nearest neighbours",
    family="neighbours",
    holds=("nothing: this is no attacker, but a search for copies",),
    does="Tests whether a synthetic record is nearer to a training record than to any of as many others.",
    success="More than half of the synthetic records are nearer to training records.",
    shows="Copying: synthetic records that are nearer to training records than chance explains.",
    cannot="NOT A PRIVACY MEASURE. A share of one half is no guarantee, and says nothing about outliers.",
    reference="DCR and NNDR as in the trade, against a holdout; Yao et al. 2025 on why they are no measure of privacy",
)

_PAIRS = 12
_EQUAL = 1e-9
_LONGEST_CELL = 40
_MOST_SHOWN = 8
_TITLE = "The nearest pairs: synthetic, and the real record beside it"


def attack(data: AttackData) -> AttackResult:
    """Search for copies."""
    n = min(len(data.seen), len(data.unseen))
    rng = data.random(9)
    rows = [np.sort(rng.permutation(len(side))[:n]) for side in (data.seen, data.unseen)]
    sides = [side.take(kept) for side, kept in zip((data.seen, data.unseen), rows, strict=True)]
    released = data.synthetic.values
    (own, who), (other, others) = (nearest(side.points.values, released, min(2, n)) for side in sides)
    share, interval = _nearer((own[:, 0], other[:, 0]), (who[:, 0], others[:, 0]))
    ties = int((own[:, 0] == other[:, 0]).sum())
    pairs = np.argsort(own[:, 0], kind="stable")[:_PAIRS]
    return AttackResult(
        threat_model=THREAT_MODEL,
        measure="share of synthetic records nearer to training records than to others",
        value=share,
        interval=interval,
        baseline=0.5,
        desired="0.5: training records are no nearer than others",
        rates=(*_equal(own, other), *_quantiles(own, other)),
        claim=data.claim,
        notes=(
            "Not a privacy measure.",
            f"{counted(n, 'record')} of each side, {len(released):,} synthetic; {counted(ties, 'tie')} left out.",
        ),
        pictures=_PICTURES[data.schema.kind](data, sides[0].content, who[:, 0], pairs),
    )


def _nearer(far: tuple[Floats, Floats], who: tuple[Rows, Rows]) -> tuple[float | None, Interval | None]:
    """Return the share of synthetic records nearer to the first of two sets, and its 95 % interval.

    Synthetic records with the same nearest neighbour are correlated: each real record is one draw, whatever number of
    synthetic ones is near it. The interval is Wilson's for their effective sample size (Kish 1965).

    Args:
        far: Distances ``(n,)`` to the nearest of either set; ties are left out.
        who: The index of that record in its set.
    """
    apart = far[0] != far[1]
    first = far[0][apart] < far[1][apart]
    total = len(first)
    if not total:
        return None, None
    share = float(first.mean())
    loads = np.concatenate([np.bincount(who[0][apart][first]), np.bincount(who[1][apart][~first])])
    worth = max(1, round(total**2 / float(np.square(loads).sum())))
    return share, wilson(round(share * worth), worth)


def _equal(own: Floats, other: Floats) -> tuple[RateEstimate, ...]:
    found = []
    for name, far in (
        ("synthetic records that equal a training record", own),
        ("synthetic records that equal another real record", other),
    ):
        hits = int((far[:, 0] <= _EQUAL).sum())
        found.append(RateEstimate(name=name, value=hits / len(far), interval=wilson(hits, len(far))))
    return tuple(found)


def _quantiles(own: Floats, other: Floats) -> tuple[RateEstimate, ...]:
    found = []
    for name, far in (("training", own), ("other", other)):
        low, middle = np.quantile(far[:, 0], [0.05, 0.5])
        found += [
            RateEstimate(name=f"DCR to {name} records, 5th percentile", value=float(low)),
            RateEstimate(name=f"DCR to {name} records, median", value=float(middle)),
        ]
        if far.shape[1] > 1:
            ratio = far[:, 0] / np.maximum(far[:, 1], _EQUAL)
            found.append(RateEstimate(name=f"NNDR to {name} records, median", value=float(np.median(ratio))))
    return tuple(found)


def _of_images(data: AttackData, real: Images, who: Rows, pairs: Rows) -> tuple[Picture, ...]:
    both = (("synthetic", data.released.images[pairs]), ("real", real.images[who[pairs]]))
    return (Picture(title=_TITLE, png=png(contact_sheet(both, f"{_TITLE}: private, do not publish"))),)


def _of_series(data: AttackData, real: Series, who: Rows, pairs: Rows) -> tuple[Picture, ...]:
    header = tuple(f"step {step}" for step in range(min(8, real.length)))
    first = real.channels[0]
    cells = [
        ((name, *(f"{value:.4g}" for value in series.channel(first)[place][: len(header)])))
        for pair in pairs
        for name, series, place in (("synthetic", data.released, pair), ("real", real, who[pair]))
    ]
    return (Picture(title=f"{_TITLE}. {first}", header=("", *header), rows=tuple(cells)),)


def _of_rows(data: AttackData, real: pd.DataFrame, who: Rows, pairs: Rows) -> tuple[Picture, ...]:
    names = [name for name, column in data.schema.columns.items() if column.modelled]
    made = _written(data.released[names].iloc[pairs], data.schema.columns)
    near = _written(real[names].iloc[who[pairs]], data.schema.columns)
    rows = []
    for place in range(len(pairs)):
        rows += [("synthetic", *_cells(made.iloc[place])), ("real", *_cells(near.iloc[place]))]
    return (Picture(title=_TITLE, header=("", *names), rows=tuple(rows)),)


def _of_related(data: AttackData, real: RelatedRows, who: Rows, pairs: Rows) -> tuple[Picture, ...]:
    return tuple(_of_one_table(data, real, name, who, pairs) for name in real.frames)


def _of_one_table(data: AttackData, real: RelatedRows, table: str, who: Rows, pairs: Rows) -> Picture:
    """Return the rows of the nearest pairs in one table."""
    every = {str(own): data.schema.columns.get(f"{table}.{own}") for own in real.frames[table]}
    columns = {own: column for own, column in every.items() if column is not None and column.modelled}
    names, rows = list(columns), []
    for pair in pairs:
        for side, units, place in (("synthetic", data.released, pair), ("real", real, who[pair])):
            own = _written(units.take(np.array([place])).frames[table][names], columns)
            rows += [(side, *_cells(own.iloc[number])) for number in range(min(len(own), _MOST_SHOWN))]
    return Picture(title=f"{_TITLE}. {table}", header=("", *names), rows=tuple(rows))


_PICTURES: ByKind[Callable[[AttackData, Any, Rows, Rows], tuple[Picture, ...]]] = ByKind(
    "pictures of nearest pairs", table=_of_rows, images=_of_images, series=_of_series, relational=_of_related
)
"""Kind of data -> its nearest pairs side by side. Private."""


def _written(frame: pd.DataFrame, columns: Mapping[str, Column]) -> pd.DataFrame:
    """Return canonical or sampled cells alike, as files have them."""
    frame = frame.reset_index(drop=True)
    return with_columns(frame, {name: columns[name].csv_cells(frame[name], TextMarks()) for name in frame.columns})


def _cells(row: Any) -> tuple[str, ...]:
    return tuple(_text(value) for value in row)


def _text(value: Any) -> str:
    """Return a cell as text, equal for both sides' storage types: a whole number without decimals."""
    if pd.isna(value):
        return "(missing)"
    if isinstance(value, float | np.floating):
        return f"{value:.0f}" if float(value).is_integer() else f"{value:.6g}"
    return str(value)[:_LONGEST_CELL]
