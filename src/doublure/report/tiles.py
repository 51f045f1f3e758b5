"""Tiles on top of an evaluation's page, and the glossary of its terms.

Every kind of data is asked three questions. Are frequencies close to those of real records? Are the records useful? Are
the values of a record consistent? A table has a score for each, from 0 to 100
(:mod:`doublure.measures.tables.overall`); other kinds show their single most informative figure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.scores import Score
from doublure.measures.series import SeriesEvaluation
from doublure.measures.tables.overall import OverallScore, ScoreComponent
from doublure.report.cells import ScoreCell, make_cell

_WHOLE = (0.0, 100.0)
_QUESTIONS = {
    "Closeness": "Are frequencies close to those of real records?",
    "Usefulness": "What are analyses of the records worth?",
    "Coherence": "Does what stands in a record go together?",
}
_TERMS = {
    "independent columns": "the least to expect: each column drawn on its own from the real rows, with the right "
    "frequencies and no relation to the others.",
    "independent steps": "the least to expect: each step drawn on its own, with the right values and no course in "
    "time.",
    "independent tables": "the least to expect: each table drawn on its own, with nothing handed from parent to child.",
    "class means": "a simple comparison: the mean of each class's real images, without privacy, with noise. It may be "
    "ahead.",
    "AUC": "area under the ROC curve, how well a model ranks: 0.5 is guessing, 1 is perfect.",
    "average precision": "how many of the records that a model points to are of the rarer class.",
    "TVD": "total variation distance: the share of records that would have to change for frequencies to match.",
    "Fréchet distance": "how far the mean and the spread of two sets of images are apart; 0 is equal.",
    "spectrum": "how a series’ variance is shared out among slow and fast waves.",
    "autocorrelation": "how much a step says of a later one.",
    "two-sample AUC": "how well a classifier distinguishes synthetic records from real ones: 0.5 is not at all.",
    "μ": "the expected privacy loss of an average record: an estimate, and no ε.",
    "ROC": "true positives against false positives, at every threshold of an attacker.",
    "FPR": "false positive rate: how many non-members an attacker calls members.",
    "TPR": "true positive rate: how many members an attacker finds.",
    "lower bound": "what an attack has shown at least, with a confidence of 95 %.",
    "ε": "how much one unit can change the probability of any result: by a factor of e^ε at most.",
    "baseline": "the same attacker without the synthetic data.",
}


@dataclass(frozen=True, kw_only=True)
class ScoreTile:
    """One of the three tiles.

    Attributes:
        name: Closeness, usefulness or coherence.
        question: Its question.
        figure: The name of the figure that answers it; empty where that is the tile's.
        meaning: The figure's meaning in a sentence; hidden where the figure is a score that the question explains.
        unit: The unit after the value.
        cell: Its figures.
        undefined: The reason why it is undefined; empty otherwise.
    """

    name: str
    question: str
    figure: str
    meaning: str
    unit: str
    cell: ScoreCell
    undefined: str = ""


def table_tiles(overall: OverallScore, lost: str = "") -> list[ScoreTile]:
    """Return the tiles of a table.

    Args:
        overall: The score and its components.
        lost: The number of lost pairs in words, beside coherence; empty for none.
    """
    return [
        _tile(
            name,
            component.score,
            figure="; ".join(filter(None, [lost if name == "Coherence" else "", _rests_on(component)])),
            scale=_WHOLE,
            unit="of 100",
            undefined=f"{component.reason[0].upper()}{component.reason[1:]}." if component.undefined else "",
        )
        for name, component in zip(_QUESTIONS, overall.components, strict=True)
        if component.parts
    ]


def _rests_on(component: ScoreComponent) -> str:
    return component.rests_on and f"By {component.rests_on}: the rest cannot be told"


def image_tiles(found: ImageEvaluation) -> list[ScoreTile]:
    """Return the tiles of images."""
    wanted = {
        "Closeness": [*found.pixels[:1]],
        "Usefulness": [entry.accuracy for entry in found.classifiers[:1]],
        "Coherence": [*found.texture[-1:]],
    }
    return [_tile(name, score, figure=score.name) for name, scores in wanted.items() for score in scores]


def series_tiles(found: SeriesEvaluation) -> list[ScoreTile]:
    """Return the tiles of series."""
    known = {score.key: score for score in found.scores}
    wanted = {"Closeness": "values", "Usefulness": "predictive", "Coherence": "autocorrelation"}
    return [_tile(name, known[key], figure=known[key].name) for name, key in wanted.items() if key in known]


def related_tiles(found: RelationalEvaluation) -> list[ScoreTile]:
    """Return the tiles of related tables: each shows the table, or the relation, with the lowest score."""
    tiles = []
    for place, name in enumerate(_QUESTIONS):
        known = [(table, measured.overall.components[place].score) for table, measured in found.tables.items()]
        if name == "Coherence":
            known += [
                (f"{relation.child} and {'one another' if score.key == 'transitions' else 'their parents'}", position)
                for relation in found.relations
                for score in relation.scores
                if score.key in ("parent_child", "transitions") and (position := score.position) is not None
            ]
        scored = [(score.value, table, score) for table, score in known if score.value is not None]
        if scored:
            _, table, score = min(scored, key=lambda entry: entry[0])
            least = f"of {table}" + (", the lowest" if len(scored) > 1 else "")
            tiles.append(_tile(name, score, figure=least, scale=_WHOLE, unit="of 100"))
    return tiles


def _tile(
    name: str,
    score: Score,
    *,
    figure: str = "",
    scale: tuple[float, float] | None = None,
    unit: str = "",
    undefined: str = "",
) -> ScoreTile:
    return ScoreTile(
        name=name,
        question=_QUESTIONS[name],
        figure=figure,
        meaning=score.meaning,
        unit=unit,
        cell=make_cell(score, scale),
        undefined=undefined,
    )


def find_terms(said: Iterable[str], always: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the terms that occur in sentences, each with its meaning, in the order of the text.

    Args:
        said: Sentences.
        always: Terms on the page in any case.
    """
    text = " ".join(said)
    found = {term: match.start() for term in _TERMS if (match := re.search(rf"(?i:{re.escape(term)})\b", text))}
    listed = sorted(found, key=lambda term: found[term])
    return [(term, _TERMS[term]) for term in dict.fromkeys((*listed, *(one for one in always if one in _TERMS)))]
