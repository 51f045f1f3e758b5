"""One score from 0 to 100: the mean of how close the rows are, how useful, and how coherent.

Each of the three is the mean of a few parts. A part is the share of the way from its zero to what other real rows
reach, cut off at 0 and 1, times 100:

===========  ==========================================  ==============================================================
             zero                                        figures
===========  ==========================================  ==============================================================
closeness    no frequency in common                      total variation in quantile bins of real rows: of columns, of
                                                         pairs, of triples
usefulness   guessing                                    ranking (AUC) and average precision after training on the
                                                         rows; regression coefficients with the right sign; the median
                                                         relative error of count queries
coherence    independent columns                         the share of rows that break no rule of the real rows; how
                                                         much of the associations is off
===========  ==========================================  ==============================================================

Other real rows are those kept aside; without any, a quarter of the fitted ones. (Rankings: training on the fitted
rows.) Where the way from the zero to them is no longer than its own interval, a part cannot be told, and is left out: a
share of that way would be made of chance. There is no weight to choose, and none was fitted to any method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublure.intervals import Result
from doublure.measures.resampling import Resamples, interval_of
from doublure.measures.scores import Score
from doublure.measures.tables.count_queries import CountQueries
from doublure.measures.tables.marginals import Marginals
from doublure.measures.tables.regression import Regression
from doublure.measures.tables.rules import StateRules
from doublure.measures.tables.utility import Utility

_ROLES = ("value", "baseline", "real")


class Part(Result):
    """One part of one of the three, from 0 to 1.

    Attributes:
        name: What it is.
        formula: How it follows from figures of the report.
        score: The synthetic rows', beside the anchors'; null where it cannot be told.
    """

    name: str
    formula: str
    score: Score


class Third(Result):
    """Closeness, usefulness or coherence.

    Attributes:
        score: From 0 to 100; its value is null where no part of it is known.
        parts: What it is the mean of, times 100; those that cannot be told are left out of it.
    """

    score: Score
    parts: tuple[Part, ...]

    @property
    def untold(self) -> bool:
        """Whether it was measured and cannot be told: other real rows are no better than the zero of any part."""
        return bool(self.parts) and self.score.value is None

    @property
    def why(self) -> str:
        """Why it cannot be told, where it cannot."""
        return f"other real rows are not clearly better than {_ZEROS[self.score.key]}"


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
    found: Marginals,
    utility: Utility | None,
    regression: Regression | None,
    queries: CountQueries,
    rules: StateRules,
    resamples: Resamples,
) -> Overall:
    """Return the score of a table from its figures."""
    parts = {
        "closeness": _closeness(found),
        "usefulness": [*_prediction(utility), *_signs(regression), *_counts(queries)],
        "coherence": _coherence(found, rules),
    }
    thirds = {key: _third(key, [each.part(resamples) for each in own], resamples) for key, own in parts.items()}
    scores = [third.score for third in thirds.values()]
    meaning = "The mean of closeness, usefulness and coherence, 0 to 100; 100 is what other real rows reach."
    return Overall(score=_mean("overall", "Overall", scores, 1.0, meaning, resamples), **thirds)


_ZEROS = {"closeness": "rows with nothing in common", "usefulness": "guessing", "coherence": "independent columns"}
_MEANINGS = {
    "closeness": "How close frequencies are to real rows', from nothing in common (0) to other real rows (100).",
    "usefulness": "What predictions, regressions and counts from the rows are worth, from guessing (0) to real rows "
    "(100).",
    "coherence": "Whether what stands in a row goes together, from independent columns (0) to other real rows (100).",
}


def _third(key: str, parts: list[Part], resamples: Resamples) -> Third:
    scores = [part.score for part in parts]
    return Third(score=_mean(key, key.capitalize(), scores, 100.0, _MEANINGS[key], resamples), parts=tuple(parts))


def _mean(key: str, name: str, scores: list[Score], times: float, meaning: str, resamples: Resamples) -> Score:
    known = [score for score in scores if score.value is not None]
    figures: dict[str, float | None] = {}
    for role in _ROLES:
        each = [figure for score in known if (figure := getattr(score, role)) is not None]
        figures[role] = times * float(np.mean(each)) if each else None
    resampled = [resamples.of(score.key) for score in known]
    if known and not any(each is None for each in resampled):
        resamples.keep(key, "value", times * np.mean(np.stack(resampled), axis=0))  # type: ignore[arg-type]
    return resamples.sure(Score(key=key, name=name, goal="high", range=(0.0, 100.0), meaning=meaning, **figures))


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """A figure that a part follows from.

    Attributes:
        key: The part's.
        name: The part's.
        formula: How it follows.
        score: The figure.
        good: The figure to a number of which more is better.
        zero: Where such numbers begin; null: at that of independent columns.
    """

    key: str
    name: str
    formula: str
    score: Score
    good: Callable[[Any], Any]
    zero: float | None

    def part(self, resamples: Resamples) -> Part:
        """Return the share of the way from the zero to other real rows; null where that way is made of chance."""
        figures = {role: self.good(getattr(self.score, role)) for role in _ROLES}
        zero = figures["baseline"] if self.zero is None else self.zero
        way = figures["real"] - zero
        key = f"part {self.key}"
        score = Score(key=key, name=self.name, value=None, goal="high", range=(0.0, 1.0))
        if way > self._error(way, resamples):
            shares = {role: _cut((figure - zero) / way) for role, figure in figures.items()}
            score = score.model_copy(update=shares)
            resampled = resamples.of(self.score.key)
            if resampled is not None:
                # Away from the ends, so that the resamples of a part at its end still say how sure it is.
                resamples.keep(key, "value", (self.good(resampled) - zero) / way)
        return Part(name=self.name, formula=self.formula, score=score)

    def _error(self, way: float, resamples: Resamples) -> float:
        """Return how wide the interval of the way is; 0 where nobody knows."""
        ends = [resamples.of(self.score.key, "real"), resamples.of(self.score.key, "baseline")]
        if ends[0] is None or (self.zero is None and ends[1] is None):
            return 0.0
        low, high = interval_of(self.good(ends[0]) - (self.good(ends[1]) if self.zero is None else self.zero), way)
        return high - low


def _cut(share: float) -> float:
    return min(1.0, max(0.0, share))


def _measured(
    score: Score | None, key: str, name: str, formula: str, good: Callable[[Any], Any], zero: float | None
) -> list[_Measured]:
    """Return what a part follows from; nothing where one of the three figures is not known."""
    if score is None or None in (score.value, score.baseline, score.real):
        return []
    return [_Measured(key=key, name=name, formula=formula, score=score, good=good, zero=zero)]


def _closeness(found: Marginals) -> list[_Measured]:
    scores = {score.key: score for score in found.scores}
    formula, triples = "(1 − TVD) ÷ (1 − TVD of other real rows)", "k-marginal score ÷ that of other real rows"
    return [
        *_measured(scores.get("quantile_columns"), "columns", "columns", formula, _less, 0.0),
        *_measured(scores.get("quantile_pairs"), "pairs", "pairs of columns", formula, _less, 0.0),
        *_measured(scores.get("k_marginal"), "triples", "triples of columns", triples, _as_it_is, 0.0),
    ]


def _prediction(utility: Utility | None) -> list[_Measured]:
    if utility is None:
        return []
    scores = {score.key: score for score in utility.scores}
    ranking = "(AUC − ½) ÷ (AUC of real rows − ½)"
    precision = "(AP − g) ÷ (AP of real rows − g), g = AP of guessing"
    return [
        *_measured(scores["auc"], "ranking", "ranking", ranking, _as_it_is, 0.5),
        *_measured(
            scores["average_precision"], "precision", "average precision", precision, _as_it_is, utility.guessing
        ),
    ]


def _signs(found: Regression | None) -> list[_Measured]:
    formula = "(2 s − 1) ÷ (2 s of other real rows − 1), s = share with the right sign"
    score = None if found is None else found.scores[0]
    return _measured(score, "signs", "coefficients", formula, lambda share: 2 * share - 1, 0.0)


def _counts(found: CountQueries) -> list[_Measured]:
    formula = "(1 − e) ÷ (1 − e of other real rows), e = median relative error"
    return _measured(found.scores[1] if found.asked else None, "counts", "count queries", formula, _less, 0.0)


def _coherence(found: Marginals, rules: StateRules) -> list[_Measured]:
    broken = "(i − b) ÷ (i − b of other real rows), b = share of rows that break a rule, i = b of independent columns"
    off = (
        "(i − a) ÷ (i − a of other real rows), a = Σ|V − V of real rows| over all pairs, Cramér’s V, i = a of "
        "independent columns"
    )
    return [
        *_measured(rules.score if rules.rules else None, "rules", "rules", broken, _less, None),
        *_measured(found.association, "association", "associations", off, _less, None),
    ]


def _less(figure: Any) -> Any:
    return 1 - figure


def _as_it_is(figure: Any) -> Any:
    return figure
