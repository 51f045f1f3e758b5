"""Regression coefficients of the target, for agreement between studies of synthetic and of real rows.

One logistic regression of the target on the other columns is fitted to each table. Numbers are standardised with the
real rows' mean and deviation (after sign(x) · log(1 + |x|) where their skewness exceeds 2). Values with at least a
hundredth of the real rows are indicators; the most common one is the reference. Of collinear columns (more than four
fifths of the variance explained by those before), the first stays, in the order of their correlation with the target.
Coefficients that are clear on the real rows (more than two standard errors from 0) are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from doublure.intervals import Result
from doublure.measures.resampling import ROWS_OF, Resamples
from doublure.measures.scores import Score
from doublure.measures.tables.coding import MISSING, Coded, Coder
from doublure.measures.tables.features import TargetClasses, make_features
from doublure.measures.tables.fidelity import Tables
from doublure.support.arrays import Floats

MOST_ROWS = 50_000
"""Most rows that a regression is fitted to; of more, a uniform sample is used."""

_MOST_TERMS = 40
_CANDIDATES = 200
_LEAST_SHARE = 0.01
_LEAST_NEW = 0.2
_SKEWED = 2.0
_CLEAR = 2.0
_RIDGE = 1.0
_ROUNDS = 60
_FEWEST_ROWS = 20
_ROWS = {"train": "train", **ROWS_OF}


class Coefficient(Result):
    """One coefficient that is clear on the real rows, in log odds.

    Attributes:
        term: Its term: a number (per standard deviation), or a column's value.
        real: On the real rows.
        error: Its standard error on the real rows.
        synthetic: On the synthetic rows.
        holdout: On real rows kept aside.
    """

    term: str
    real: float
    error: float
    synthetic: float
    holdout: float


class Regression(Result):
    """The coefficients of all tables.

    Attributes:
        outcome: The outcome of the odds: the target and a value of it.
        scores: The share of coefficients with the right sign, and their mean absolute error.
        coefficients: Each, the largest error first.
        terms: Number of terms of the regression.
    """

    outcome: str
    scores: tuple[Score, ...]
    coefficients: tuple[Coefficient, ...]
    terms: int

    @property
    def sizes(self) -> tuple[float, float]:
        """The least and the most of the synthetic coefficients in units of the real ones: 1 is as large, 0 is lost."""
        found = [own.synthetic / own.real for own in self.coefficients]
        return min(found), max(found)


@dataclass(frozen=True, kw_only=True)
class _Term:
    """One column of the design matrix."""

    name: str
    place: int
    column: str
    code: int | None = None
    middle: float = 0.0
    spread: float = 1.0
    log: bool = False
    missing: int = -1

    def read(self, table: Coded) -> Floats:
        """Return ``(N,)``; 0 where a number is missing."""
        if self.code is not None:
            return np.asarray(table.codes[:, self.place] == self.code, dtype=np.float64)
        numbers = _numbers(table, self.column, self.place, self.missing)
        numbers = _symlog(numbers) if self.log else numbers
        scaled: Floats = np.nan_to_num((numbers - self.middle) / self.spread, nan=0.0)
        return scaled


def regression(coder: Coder, target: TargetClasses, tables: Tables, rng: np.random.Generator) -> Regression | None:
    """Return the coefficients of the target's regression; null where none is clear, or there is too little to fit.

    Args:
        coder: Reads the schema.
        target: The outcome; with more than two classes, the most common against the others.
        tables: The tables to fit.
        rng: Draws the rows, where there are more than ``MOST_ROWS``.
    """
    known = {
        role: target.known(table, rng, MOST_ROWS) for role, table in {"train": tables.train, **tables.others}.items()
    }
    train, classes = known["train"]
    if min(len(part) for part, _ in known.values()) < _FEWEST_ROWS or len(np.unique(classes)) < 2:
        return None
    own = 1 if len(target.labels) == 2 else int(np.bincount(classes).argmax())
    truth = {role: (found == own).astype(np.float64) for role, (_, found) in known.items()}
    terms = _chosen(_terms(coder, train), train, truth["train"])
    if not terms:
        return None
    designs = {role: np.stack([term.read(part) for term in terms], axis=1) for role, (part, _) in known.items()}
    fits = {role: fit_logistic(design, truth[role]) for role, design in designs.items()}
    real, errors, _ = fits["train"]
    clear = np.flatnonzero(np.abs(real) > _CLEAR * errors).tolist()
    if not clear:
        return None
    found = {role: values for role, (values, _, _) in fits.items()}
    _resample(tables.resamples, {role: (values[clear], rows[:, clear]) for role, (values, _, rows) in fits.items()})
    scores = _scores({role: values[clear] for role, values in found.items()})
    return Regression(
        outcome=f"{target.name} = {target.labels[own]}",
        scores=tuple(tables.resamples.sure(score) for score in scores),
        coefficients=_coefficients([terms[place].name for place in clear], found, errors, clear),
        terms=len(terms),
    )


def fit_logistic(design: Floats, truth: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a logistic regression's coefficients, their standard errors, and each row's influence on them ``(N, Q)``.

    The intercept is left out.

    Newton's method with a ridge of 1 on every coefficient but the intercept, so that the coefficients are finite even
    where a term determines the outcome.

    Args:
        design: ``(N, Q)``, without intercept.
        truth: ``(N,)`` 0 or 1.
    """
    x = np.column_stack([np.ones(len(design)), design])
    ridge = np.diag(np.r_[1e-6, np.full(design.shape[1], _RIDGE)])
    weights = np.zeros(x.shape[1])
    loss, hessian = _loss(x, truth, weights, ridge), ridge
    for _ in range(_ROUNDS):
        chances = _logistic(x @ weights)
        hessian = (x * (chances * (1 - chances))[:, None]).T @ x + ridge
        step = np.linalg.solve(hessian, x.T @ (truth - chances) - ridge @ weights)
        size, moved = 1.0, _loss(x, truth, weights + step, ridge)
        while moved > loss and size > 1e-4:
            size /= 2
            moved = _loss(x, truth, weights + size * step, ridge)
        weights, gained, loss = weights + size * step, loss - moved, min(loss, moved)
        if gained < 1e-9 * max(1.0, abs(loss)):
            break
    inverse = np.linalg.inv(hessian)
    influence = len(x) * (x * (truth - _logistic(x @ weights))[:, None]) @ inverse
    return weights[1:], np.sqrt(np.diag(inverse))[1:], influence[:, 1:]


def _logistic(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(values, -35, 35)))


def _loss(x: Floats, truth: Floats, weights: Floats, ridge: Floats) -> float:
    values = x @ weights
    return float((np.logaddexp(0, values) - truth * values).sum() + weights @ ridge @ weights / 2)


# -- terms -----------------------------------------------------------------------------------------------------------


def _terms(coder: Coder, train: Coded) -> list[_Term]:
    terms: list[_Term] = []
    for name in make_features(coder, train).names:
        place, column = coder.names.index(name), coder.columns[name]
        missing = coder.sizes[place] - 1
        shares = np.bincount(train.codes[:, place], minlength=coder.sizes[place]) / len(train)
        frequent = [code for code in range(len(shares)) if _LEAST_SHARE <= shares[code] < 1]
        if column.ordered:
            numbers = _numbers(train, name, place, missing)
            log = column.bounded and abs(_skewness(numbers)) > _SKEWED
            scaled = _symlog(numbers) if log else numbers
            present = scaled[~np.isnan(scaled)]
            if len(present) and present.std() > 0:
                middle, spread = float(present.mean()), float(present.std())
                terms.append(
                    _Term(name=name, place=place, column=name, middle=middle, spread=spread, log=log, missing=missing)
                )
            frequent = [missing] if missing in frequent else []
        else:
            frequent = [code for code in frequent if code != int(shares.argmax())]
        labels = (*("" for _ in range(missing)), MISSING) if column.bounded else coder.labels(name)
        terms += [_Term(name=f"{name} = {labels[code]}", place=place, column=name, code=code) for code in frequent]
    return terms


def _numbers(table: Coded, name: str, place: int, missing: int) -> Floats:
    """Return a column's numbers, or the ranks of an ordinal; NaN where missing."""
    if name in table.numbers:
        return table.numbers[name]
    codes = table.codes[:, place]
    return np.where(codes == missing, np.nan, codes.astype(np.float64))


def _symlog(values: Floats) -> Floats:
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)), dtype=np.float64)


def _skewness(values: Floats) -> float:
    present = values[~np.isnan(values)]
    spread = present.std() if len(present) else 0.0
    return float((((present - present.mean()) / spread) ** 3).mean()) if spread > 0 else 0.0


def _chosen(terms: list[_Term], train: Coded, truth: Floats) -> list[_Term]:
    """Return the terms that are not collinear, by the strength of their correlation with the outcome."""
    if not terms:
        return []
    outcome = (truth - truth.mean()) / truth.std()
    strengths = [abs(float(_standardised(term.read(train)) @ outcome)) for term in terms]
    order = np.argsort(-np.asarray(strengths), kind="stable")[:_CANDIDATES].tolist()
    scaled = np.stack([_standardised(terms[place].read(train)) for place in order])
    correlations = scaled @ scaled.T / scaled.shape[1]
    kept: list[int] = []
    for place in range(len(order)):
        if not scaled[place].any():
            continue
        if kept:
            beside = correlations[kept, place]
            explained = float(beside @ np.linalg.lstsq(correlations[np.ix_(kept, kept)], beside, rcond=None)[0])
            if 1 - explained < _LEAST_NEW:
                continue
        kept.append(place)
        if len(kept) == _MOST_TERMS:
            break
    return [terms[order[place]] for place in kept]


def _standardised(column: Floats) -> Floats:
    """Return a column of mean 0 and variance 1; zeros where all are equal."""
    spread = float(column.std())
    return np.asarray((column - column.mean()) / spread if spread > 0 else np.zeros(len(column)), dtype=np.float64)


# -- figures ---------------------------------------------------------------------------------------------------------


def _resample(resamples: Resamples, fits: Mapping[str, tuple[Floats, Floats]]) -> None:
    """Store the resamples of both figures, through those of all coefficients, because a sign is not smooth."""
    found = {
        role: values + resamples.shifts(f"{_ROWS[role]} of coefficients", rows) for role, (values, rows) in fits.items()
    }
    for role in ("value", "baseline", "real"):
        resamples.keep("coefficient_signs", role, (np.sign(found[role]) == np.sign(found["train"])).mean(axis=1))
        resamples.keep("coefficients", role, np.abs(found[role] - found["train"]).mean(axis=1))


def _scores(found: Mapping[str, Floats]) -> tuple[Score, ...]:
    real = found["train"]
    roles = ("value", "baseline", "real")
    signs = {role: float((np.sign(found[role]) == np.sign(real)).mean()) for role in roles}
    errors = {role: float(np.abs(found[role] - real).mean()) for role in roles}
    clear = f"the {len(real)} that are clear on real rows"
    return (
        Score(
            key="coefficient_signs",
            name="Coefficients, right sign",
            value=signs["value"],
            goal="high",
            range=(0.0, 1.0),
            baseline=signs["baseline"],
            real=signs["real"],
            meaning=f"The share of a logistic regression's coefficients with the sign of the real rows'; of {clear}.",
        ),
        Score(
            key="coefficients",
            name="Coefficients, mean error",
            value=errors["value"],
            goal="low",
            range=(0.0, max(1.0, *errors.values())),
            baseline=errors["baseline"],
            real=errors["real"],
            meaning=f"How far these coefficients are off, in log odds; mean absolute error over {clear}.",
        ),
    )


def _coefficients(
    names: list[str], found: Mapping[str, Floats], errors: Floats, clear: list[int]
) -> tuple[Coefficient, ...]:
    each = [
        Coefficient(
            term=name,
            real=float(found["train"][place]),
            error=float(errors[place]),
            synthetic=float(found["value"][place]),
            holdout=float(found["real"][place]),
        )
        for name, place in zip(names, clear, strict=True)
    ]
    return tuple(sorted(each, key=lambda entry: -abs(entry.synthetic - entry.real)))
