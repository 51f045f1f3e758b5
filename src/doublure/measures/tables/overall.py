"""One score from 0 to 100: the mean of how close the rows are, how useful, and how coherent.

Each of the three is the mean of a few parts from 0 to 1, times 100; a part that a table does not have is left out:

===========  =====================================================================================================
closeness    1 − total variation in quantile bins of real rows: of columns, of pairs, of triples
usefulness   what models trained on the rows keep of the real rows' ranking (AUC above ½) and of their average
             precision (above guessing); how far more than half of the regression coefficients have the right sign;
             1 − the median relative error of count queries
coherence    the share of rows that break no rule of the real rows; the share of the associations that is right
===========  =====================================================================================================

Real rows kept aside and independent columns are measured in the same way and stand beside it: the one is what can be
hoped for, the other the least to expect. There is no weight to choose, and none was fitted to any method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from doublure.intervals import Result
from doublure.measures.scores import Score
from doublure.measures.tables.count_queries import CountQueries
from doublure.measures.tables.marginals import Marginals
from doublure.measures.tables.regression import Regression
from doublure.measures.tables.rules import Rules
from doublure.measures.tables.utility import Utility

_ROLES = ("value", "baseline", "real")
_LEAST_LEARNED = 0.01


class Part(Result):
    """One part of one of the three, from 0 to 1.

    Attributes:
        name: What it is.
        formula: How it follows from figures of the report.
        score: The synthetic rows', beside the anchors'.
    """

    name: str
    formula: str
    score: Score


class Third(Result):
    """Closeness, usefulness or coherence.

    Attributes:
        score: From 0 to 100; its value is null where no part of it is known.
        parts: What it is the mean of, times 100.
    """

    score: Score
    parts: tuple[Part, ...]


class Overall(Result):
    """One score, and what it is made of.

    Attributes:
        score: The mean of those of the three that are known.
        closeness: How close frequencies are.
        usefulness: What analyses of the rows are worth.
        coherence: Whether a row makes sense.
    """

    score: Score
    closeness: Third
    usefulness: Third
    coherence: Third

    @property
    def thirds(self) -> tuple[Third, Third, Third]:
        """The three."""
        return self.closeness, self.usefulness, self.coherence

    @property
    def scores(self) -> tuple[Score, ...]:
        """The score and the three; those that are known."""
        each = (self.score, *(third.score for third in self.thirds))
        return tuple(score for score in each if score.value is not None)


def overall(
    found: Marginals, utility: Utility | None, regression: Regression | None, queries: CountQueries, rules: Rules
) -> Overall:
    """Return the score of a table from its figures."""
    closeness = _third("closeness", "Closeness", _closeness(found), "How close frequencies are to those of real rows.")
    usefulness = _third(
        "usefulness",
        "Usefulness",
        [*_prediction(utility), *_signs(regression), *_counts(queries)],
        "What predictions, regressions and counts from the rows are worth.",
    )
    coherence = _third(
        "coherence", "Coherence", _coherence(found, rules), "Whether what stands in a row goes together."
    )
    thirds = [third.score for third in (closeness, usefulness, coherence)]
    return Overall(
        score=_mean("overall", "Overall", thirds, 1.0, "The mean of closeness, usefulness and coherence, 0 to 100."),
        closeness=closeness,
        usefulness=usefulness,
        coherence=coherence,
    )


def _third(key: str, name: str, parts: list[Part], meaning: str) -> Third:
    return Third(score=_mean(key, name, [part.score for part in parts], 100.0, meaning), parts=tuple(parts))


def _mean(key: str, name: str, scores: list[Score], times: float, meaning: str) -> Score:
    figures: dict[str, float | None] = {}
    for role in _ROLES:
        known = [figure for score in scores if (figure := getattr(score, role)) is not None]
        figures[role] = times * float(np.mean(known)) if known else None
    return Score(
        key=key,
        name=name,
        value=figures["value"],
        goal="high",
        range=(0.0, 100.0),
        baseline=figures["baseline"],
        real=figures["real"],
        meaning=meaning,
    )


def _part(key: str, name: str, formula: str, of: Callable[[str], float]) -> Part:
    figures = {role: min(1.0, max(0.0, of(role))) for role in _ROLES}
    score = Score(
        key=key,
        name=name,
        value=figures["value"],
        goal="high",
        range=(0.0, 1.0),
        baseline=figures["baseline"],
        real=figures["real"],
    )
    return Part(name=name, formula=formula, score=score)


def _known(score: Score) -> Mapping[str, float] | None:
    """Return a score's three figures, if all are known."""
    figures = {role: getattr(score, role) for role in _ROLES}
    return None if None in figures.values() else figures


def _closeness(found: Marginals) -> list[Part]:
    scores = {score.key: score for score in found.scores}
    parts = []
    for key, name in {"quantile_columns": "columns", "quantile_pairs": "pairs of columns"}.items():
        if key in scores and (figures := _known(scores[key])) is not None:
            parts.append(_part(key, name, "1 − total variation", lambda role, own=figures: 1 - own[role]))  # type: ignore[misc]
    if "k_marginal" in scores and (figures := _known(scores["k_marginal"])) is not None:
        parts.append(
            _part("k_marginal", "triples of columns", "k-marginal score ÷ 1000", lambda role: figures[role] / 1000)
        )
    return parts


def _prediction(utility: Utility | None) -> list[Part]:
    if utility is None:
        return []
    scores = {score.key: score for score in utility.scores}
    guesses = {"auc": 0.5, "average_precision": utility.guessing}
    names = {
        "auc": ("ranking", "(AUC − ½) ÷ (AUC of real rows − ½)"),
        "average_precision": ("average precision", "(AP − g) ÷ (AP of real rows − g), g = AP of guessing"),
    }
    parts = []
    for key, guess in guesses.items():
        figures = _known(scores[key])
        if figures is not None and figures["real"] - guess > _LEAST_LEARNED:
            parts.append(_part(key, *names[key], _kept(figures, guess)))
    return parts


def _kept(figures: Mapping[str, float], guess: float) -> Callable[[str], float]:
    return lambda role: (figures[role] - guess) / (figures["real"] - guess)


def _signs(found: Regression | None) -> list[Part]:
    figures = None if found is None else _known(found.scores[0])
    if figures is None:
        return []
    return [
        _part(
            "coefficient_signs", "coefficients", "2 · share with the right sign − 1", lambda role: 2 * figures[role] - 1
        )
    ]


def _counts(found: CountQueries) -> list[Part]:
    figures = _known(found.scores[1]) if found.asked else None
    if figures is None:
        return []
    return [_part("count_queries", "count queries", "1 − median relative error", lambda role: 1 - figures[role])]


def _coherence(found: Marginals, rules: Rules) -> list[Part]:
    parts = []
    figures = _known(rules.score)
    if figures is not None and rules.rules:
        parts.append(_part("rules", "rules", "1 − share of rows that break one", lambda role: 1 - figures[role]))
    lost = None if found.association is None else _known(found.association)
    if lost is not None:
        formula = "1 − Σ|V − V of real rows| ÷ Σ V of real rows, Cramér’s V of all pairs"
        parts.append(_part("association", "associations", formula, lambda role: 1 - lost[role]))
    return parts
