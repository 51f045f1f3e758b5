"""Ranking of real units by the schema's target, by models trained on synthetic units.

The target is a column of the root or of a child. A unit is positive if any of its rows has one value: the rarest that
one real unit in a hundred has. The features are the aggregates of all other columns
(:func:`doublure.measures.relational.histories.aggregates`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from doublure.measures.classification import area_under_roc
from doublure.measures.influence import area_influence
from doublure.measures.relational.histories import MOST_COMPARED, aggregates
from doublure.measures.relational.units import CodedUnits, ComparedUnits, UnitCoder
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score
from doublure.measures.tables.coding import Coder
from doublure.schema.relational import RelationalSchema
from doublure.support.arrays import Floats

TextMarks = npt.NDArray[np.bool_]

_LEAST = 0.01
"""Smallest share of units that have the value, and of those without it."""


def prediction(coders: UnitCoder, sides: ComparedUnits, seed: int, resamples: Resamples) -> Score | None:
    """Return the area under the ROC curve.

    Args:
        coders: Read the schema.
        sides: The units: the test units are ranked, after training on each of the others.
        seed: Fixes the training units, where there are many, and the trees.
        resamples: Receives its resamples.

    Returns:
        The score; None without a target of few values, or where almost all real units agree on it.
    """
    train, schema = sides.train, sides.train.content.schema
    target = next(iter(schema.with_role("target")), None)
    if target is None or schema.columns[target].bounded:
        return None
    table, _, column = target.partition(".")
    labels = _coder(coders, schema, table).labels(column)
    shares = [float(_having(coders, train, (table, column), code).mean()) for code in range(len(labels))]
    asked = [code for code, share in enumerate(shares) if _LEAST <= share <= 1 - _LEAST]
    if not asked:
        return None
    code = min(asked, key=lambda code: shares[code])
    tested, rng = sides.test, np.random.default_rng(seed)
    seen, wanted = aggregates(coders, tested, (table, column)), _having(coders, tested, (table, column), code)
    figures = {}
    for role, units in (("value", sides.synthetic), ("baseline", sides.baseline), ("real", train)):
        some = rng.permutation(len(units))[:MOST_COMPARED]
        training = aggregates(coders, units, (table, column))[some]
        chances = _ranked(training, _having(coders, units, (table, column), code)[some], seen, wanted, seed)
        figures[role] = None if chances is None else area_under_roc(wanted.astype(np.int64), chances)[0]
        if chances is not None:
            influence = area_influence(wanted.astype(np.int64), chances)
            resamples.add("prediction", role, figures[role], {"test": influence})
    score = Score(
        key="prediction",
        name=f"AUC, {target} = {labels[code]}",
        goal="high",
        range=(0.0, 1.0),
        meaning=f"How well a model that has learned from synthetic units ranks real ones by whether any row has "
        f"{labels[code]} in {column}, from everything else of them; 0.5 is by chance.",
        **figures,
    )
    return resamples.sure(score)


def _having(coders: UnitCoder, units: CodedUnits, column: tuple[str, str], code: int) -> TextMarks:
    """Return an ``(N,)`` mask of the units that have a row with a value."""
    table, own = column
    place = _coder(coders, units.content.schema, table).names.index(own)
    rows = units.root if table == units.content.schema.root else units.children[table]
    if rows is None:
        return np.zeros(len(units), dtype=np.bool_)
    has: TextMarks = rows.codes[:, place] == code
    return has if rows is units.root else np.bincount(units.owners(table)[has], minlength=len(units)) > 0


def _coder(coders: UnitCoder, schema: RelationalSchema, table: str) -> Coder:
    return coders.root if table == schema.root else coders.children[table]


def _ranked(training: Floats, trained: TextMarks, seen: Floats, wanted: TextMarks, seed: int) -> Floats | None:
    """Return probabilities ``(N, 2)``, constant if the training units are of one class; None if the ranked ones are."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    if wanted.all() or not wanted.any():
        return None
    if trained.all() or not trained.any():
        return np.full((len(seen), 2), 0.5)
    model = HistGradientBoostingClassifier(max_iter=100, random_state=seed).fit(training, trained)
    return np.asarray(model.predict_proba(seen), dtype=np.float64)
