"""Overall score of a table from 0 to 100: the mean of closeness, usefulness and coherence.

Each of the three is the mean of its parts. A part is the position of a figure between its zero and the figure of other
real rows, cut off at 0 and 1, times 100:

===========  ==========================================  ==============================================================
             zero                                        figures
===========  ==========================================  ==============================================================
closeness    no frequency in common                      total variation in quantile bins of real rows: of columns, and
                                                         of pairs that clearly depend on one another in real rows
usefulness   guessing                                    ranking (AUC) and average precision after training on the
                                                         rows; regression coefficients with the right sign; the median
                                                         relative error of count queries
coherence    independent columns                         the share of rows that break no rule of the real rows; the
                                                         error of these pairs' associations, and of invented ones
===========  ==========================================  ==============================================================

Other real rows are those kept aside; without any, a quarter of the fitted ones. All sets of rows are of one size:
fewer rows are further from any others by chance. (Rankings: training on the fitted
rows.) Where the distance from the zero to them is no longer than its own interval, a part is undefined and left out: a
fraction of that distance would be chance. No weight was chosen, and none was fitted to any method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublure.intervals import Result
from doublure.measures.resampling import Resamples, percentile_interval
from doublure.measures.scores import Score
from doublure.measures.tables.count_queries import CountQueries
from doublure.measures.tables.marginals import Marginals
from doublure.measures.tables.regression import Regression
from doublure.measures.tables.rules import StateRules
from doublure.measures.tables.utility import Utility
from doublure.schema.rules.rule import list_names

_ROLES = ("value", "baseline", "real")


class ScorePart(Result):
    """One part of a component, from 0 to 1.

    Attributes:
        name: Its name.
        formula: Its formula in terms of the report's figures.
        score: The synthetic rows' score, beside its references; null where undefined.
    """

    name: str
    formula: str
    score: Score


class ScoreComponent(Result):
    """Closeness, usefulness or coherence.

    Attributes:
        score: From 0 to 100; its value is null where no part is known.
        parts: Its parts; the score is the mean of the known ones, times 100.
    """

    score: Score
    parts: tuple[ScorePart, ...]

    @property
    def undefined(self) -> bool:
        """Whether the score is undefined although measured: other real rows are no better than the zero of any part."""
        return bool(self.parts) and self.score.value is None

    @property
    def rests_on(self) -> str:
        """The parts that the score is the mean of, where others cannot be told; empty where all can, or none."""
        told = [part.name for part in self.parts if part.score.value is not None]
        return f"{list_names(told)} alone" if 0 < len(told) < len(self.parts) else ""

    @property
    def reason(self) -> str:
        """The reason why the score is undefined; empty otherwise."""
        return f"other real rows are not clearly better than {_ZEROS[self.score.key]}"


class OverallScore(Result):
    """The overall score and its components.

    Attributes:
        score: The mean of the known components.
        closeness: Similarity of frequencies.
        usefulness: Quality of analyses of the rows.
        coherence: Plausibility of single rows.
    """

    score: Score
    closeness: ScoreComponent
    usefulness: ScoreComponent
    coherence: ScoreComponent

    @property
    def components(self) -> tuple[ScoreComponent, ScoreComponent, ScoreComponent]:
        """The three components."""
        return self.closeness, self.usefulness, self.coherence

    @property
    def scores(self) -> tuple[Score, ...]:
        """The known scores: the overall one, then the components."""
        each = (self.score, *(component.score for component in self.components))
        return tuple(score for score in each if score.value is not None)


def overall(
    found: Marginals,
    utility: Utility | None,
    regression: Regression | None,
    queries: CountQueries,
    rules: StateRules,
    resamples: Resamples,
) -> OverallScore:
    """Return the score of a table from its figures."""
    parts = {
        "closeness": _closeness(found),
        "usefulness": [*_prediction(utility), *_signs(regression), *_counts(queries)],
        "coherence": _coherence(found, rules),
    }
    components = {key: _component(key, [each.part(resamples) for each in own], resamples) for key, own in parts.items()}
    scores = [component.score for component in components.values()]
    meaning = "The mean of closeness, usefulness and coherence, 0 to 100; 100 is what other real rows reach."
    return OverallScore(score=_mean("overall", "Overall", scores, 1.0, meaning, resamples), **components)


_ZEROS = {"closeness": "rows with nothing in common", "usefulness": "guessing", "coherence": "independent columns"}
_MEANINGS = {
    "closeness": "How close frequencies are to real rows', from nothing in common (0) to other real rows (100).",
    "usefulness": "What predictions, regressions and counts from the rows are worth, from guessing (0) to real rows "
    "(100).",
    "coherence": "Whether what stands in a row goes together, from independent columns (0) to other real rows (100).",
}


def _component(key: str, parts: list[ScorePart], resamples: Resamples) -> ScoreComponent:
    scores = [part.score for part in parts]
    score = _mean(key, key.capitalize(), scores, 100.0, _MEANINGS[key], resamples)
    return ScoreComponent(score=score, parts=tuple(parts))


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
class _PartFigure:
    """A figure with its transformation into a part.

    Attributes:
        key: The part's key.
        name: The part's name.
        formula: The part's formula.
        score: The figure.
        good: Transforms the figure so that more is better.
        zero: The zero of the transformed figure; null: that of independent columns.
    """

    key: str
    name: str
    formula: str
    score: Score
    good: Callable[[Any], Any]
    zero: float | None

    def part(self, resamples: Resamples) -> ScorePart:
        """Return the position between the zero and other real rows; null where their distance is chance."""
        figures = {role: self.good(getattr(self.score, role)) for role in _ROLES}
        zero = figures["baseline"] if self.zero is None else self.zero
        way = figures["real"] - zero
        key = f"part {self.key}"
        score = Score(key=key, name=self.name, value=None, goal="high", range=(0.0, 1.0))
        if way > self._error(way, resamples):
            shares = {role: min(1.0, max(0.0, (figure - zero) / way)) for role, figure in figures.items()}
            score = score.model_copy(update=shares)
            resampled = resamples.of(self.score.key)
            if resampled is not None:
                # Not cut off, so that the resamples of a part at its end still show its uncertainty.
                resamples.keep(key, "value", (self.good(resampled) - zero) / way)
        return ScorePart(name=self.name, formula=self.formula, score=score)

    def _error(self, way: float, resamples: Resamples) -> float:
        """Return the half-width of the distance's interval; 0 where unknown."""
        ends = [resamples.of(self.score.key, "real"), resamples.of(self.score.key, "baseline")]
        if ends[0] is None or (self.zero is None and ends[1] is None):
            return 0.0
        zero = self.good(ends[1]) if self.zero is None else self.zero
        low, high = percentile_interval(self.good(ends[0]) - zero, way)
        return high - low


def _measured(
    score: Score | None, key: str, name: str, formula: str, good: Callable[[Any], Any], zero: float | None
) -> list[_PartFigure]:
    """Return a figure with its transformation; empty where one of the three values is unknown."""
    if score is None or None in (score.value, score.baseline, score.real):
        return []
    return [_PartFigure(key=key, name=name, formula=formula, score=score, good=good, zero=zero)]


def _closeness(found: Marginals) -> list[_PartFigure]:
    scores = {score.key: score for score in found.scores}
    formula = "(1 − TVD) ÷ (1 − TVD of other real rows)"
    related = None if found.relations is None else found.relations.variation
    return [
        *_measured(scores.get("quantile_columns"), "columns", "columns", formula, _less, 0.0),
        *_measured(related, "pairs", "related pairs of columns", formula, _less, 0.0),
    ]


def _prediction(utility: Utility | None) -> list[_PartFigure]:
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


def _signs(found: Regression | None) -> list[_PartFigure]:
    formula = "(2 s − 1) ÷ (2 s of other real rows − 1), s = share with the right sign"
    score = None if found is None else found.scores[0]
    return _measured(score, "signs", "coefficients", formula, lambda share: 2 * share - 1, 0.0)


def _counts(found: CountQueries) -> list[_PartFigure]:
    formula = "(1 − e) ÷ (1 − e of other real rows), e = median relative error"
    return _measured(found.scores[1] if found.asked else None, "counts", "count queries", formula, _less, 0.0)


def _coherence(found: Marginals, rules: StateRules) -> list[_PartFigure]:
    broken = "(i − b) ÷ (i − b of other real rows), b = share of rows that break a rule, i = b of independent columns"
    off = (
        "(i − a) ÷ (i − a of other real rows), a = Σ|V − V of real rows| over related pairs, and pairs that become so "
        "(Cramér’s V), i = a of independent columns"
    )
    return [
        *_measured(rules.score if rules.rules else None, "rules", "rules", broken, _less, None),
        *_measured(
            None if found.relations is None else found.relations.association,
            "association",
            "associations",
            off,
            _less,
            None,
        ),
    ]


def _less(figure: Any) -> Any:
    return 1 - figure


def _as_it_is(figure: Any) -> Any:
    return figure
