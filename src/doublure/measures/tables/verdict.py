"""The evaluation in plain words, and how its figures are written."""

from __future__ import annotations

from doublure.errors import printable
from doublure.intervals import Interval, Result
from doublure.measures.holdout import SEEN
from doublure.measures.scores import Score
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.measures.tables.groups import Groups
from doublure.measures.tables.utility import Utility

_AS_PERCENT = frozenset({"accuracy", "columns", "pairs", "wasserstein", "variation", "share", "recall", "precision"})
_FINE = frozenset({"wasserstein", "pixel_mean", "pixel_spread"})
# Independent columns are nearly the real columns by construction, one at a time: they can be beaten only elsewhere.
_CAN_BE_BEATEN = frozenset({"accuracy", "auc", "macro_f1", "pairs", "association"})
_HARDLY = 0.01
_SLIGHT = 0.005
_NOWHERE = 0.02
_TINY_P = 1e-15


class Verdict(Result):
    """What to tell somebody who reads no further.

    Attributes:
        headline: One sentence.
        lines: The figures behind it.
        warnings: What is wrong.
    """

    headline: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]


def percent(share: float | None, digits: int = 1) -> str:
    r"""Return a share as a percentage; a dash where it is not known.

    Example:
        >>> percent(0.8516)
        '85.2\xa0%'
    """
    return "–" if share is None else f"{100 * share:.{digits}f}\u00a0%"


def points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    Example:
        >>> points(-0.054)
        '−5.4'
    """
    return f"{100 * share:+.1f}".replace("-", "−")


def figure(score: Score, value: float | None) -> str:
    """Return one of a score's figures as its kind is usually written."""
    if value is None:
        return "–"
    if score.key in _FINE:
        return percent(value, digits=2)
    return percent(value) if score.key in _AS_PERCENT else f"{value:.3f}"


def interval(score: Score, ends: Interval | None) -> str:
    """Return an interval as text, or nothing."""
    return span(ends, shares=score.key in _AS_PERCENT)


def span(ends: Interval | None, *, shares: bool = False) -> str:
    r"""Return an interval as text, that of shares in percent; or nothing.

    Example:
        >>> span((0.0931, 0.12)), span((0.0931, 0.12), shares=True)
        ('0.093 to 0.120', '9.3 to 12.0\xa0%')
    """
    if ends is None:
        return ""
    return f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}\u00a0%" if shares else f"{ends[0]:.3f} to {ends[1]:.3f}"


def p_value(p: float, name: str = "") -> str:
    """Return a p-value as text; after its name, if it has one.

    Example:
        >>> p_value(0.0213), p_value(2.4e-8), p_value(2.4e-8, "p"), p_value(1e-20, "p")
        ('0.021', '2e-08', 'p = 2e-08', 'p < 1e-15')
    """
    if p < _TINY_P:  # a tail so far out is the normal distribution's and nobody's data's
        return f"{name} < {_TINY_P:g}".lstrip()
    said = f"{p:.0e}" if p < 0.001 else f"{p:.3f}"
    return f"{name} = {said}" if name else said


def verdict(evaluation: TableEvaluation) -> Verdict:
    """Return the evaluation in plain words."""
    scores = {score.key: score for score in evaluation.scores}
    lines = []
    if evaluation.utility is not None:
        headline, line = _prediction(scores)
        lines.append(line)
    else:
        headline = _frequencies(scores)
    if evaluation.utility is not None:
        lines.append(_frequencies(scores))
    if "association" in scores:
        lines.append(_association(scores["association"]))
    if evaluation.groups is not None:
        lines.append(_served_worst(evaluation.groups))
    return Verdict(headline=headline, lines=tuple(lines), warnings=_warnings(evaluation))


def _prediction(scores: dict[str, Score]) -> tuple[str, str]:
    accuracy, area = scores["accuracy"], scores["auc"]
    value, real = accuracy.value or 0.0, accuracy.real or 0.0
    line = (
        f"They are right for {percent(value)} of real rows ({interval(accuracy, accuracy.interval)}). Trained on real "
        f"rows they are right for {percent(accuracy.real)}, on independent columns for {percent(accuracy.baseline)}."
    )
    if area.way is not None:
        line += (
            f" In ranking rows (area under ROC {figure(area, area.value)}) they come {_way(area.way)} from independent "
            "columns to real data."
        )
    ends = accuracy.interval or (0.0, 0.0)
    if real - (accuracy.baseline or 0.0) < max(_HARDLY, (ends[1] - ends[0]) / 2):
        return "Even real rows hardly predict the target better than independent columns do.", line
    kept = f"{min(100.0, 100 * value / real):.0f}\u00a0%"
    headline = f"Models trained on the artificial rows keep {kept} of the real data’s predictive accuracy"
    # Guessing the most frequent class keeps much of an accuracy too: the way up from there says more.
    if accuracy.way is None:
        return headline + ".", line
    if accuracy.way < _NOWHERE:
        return headline + ", no more than independent columns keep.", line
    return f"{headline}: {_way(accuracy.way)} up from independent columns.", line


def _way(way: float) -> str:
    if way >= 0.995:
        return "all of the way"
    return f"{max(0.0, 100 * way):.0f}\u00a0% of the way"


def _frequencies(scores: dict[str, Score]) -> str:
    one = scores["columns"]
    text = (
        f"To match a column’s frequencies, {percent(one.value)} of the rows would have to change (other real rows: "
        f"{percent(one.real)})"
    )
    if "pairs" not in scores:
        return text + "."
    two = scores["pairs"]
    return (
        f"{text}; to match a pair of columns’, {percent(two.value)} (other real rows: {percent(two.real)}; "
        f"independent columns: {percent(two.baseline)})."
    )


def _association(score: Score) -> str:
    return (
        f"The strength of association between two columns is off by {figure(score, score.value)} on a scale from 0 "
        f"to 1 (other real rows: {figure(score, score.real)}; independent columns: {figure(score, score.baseline)})."
    )


def _served_worst(groups: Groups) -> str:
    clear = [group for group in groups.groups if group.clear]
    if not groups.groups:
        return "No public group is large enough to be looked at on its own."
    if not clear:
        return f"None of {len(groups.groups)} public groups is clearly served worse than by training on real rows."
    worst = clear[0]
    others = f" So are {len(clear) - 1} more groups." if len(clear) > 1 else ""
    return (
        f"Served worst: {printable(worst.column)} = {printable(worst.value)}, where models are "
        f"{100 * worst.loss:.1f} points less accurate than after training on real rows ({worst.rows:,} rows).{others}"
    )


def _warnings(evaluation: TableEvaluation) -> tuple[str, ...]:
    found = [] if evaluation.rows.kept_aside else [SEEN]
    beaten = [
        score.name.lower() if score.key != "auc" else "area under ROC"
        for score in evaluation.scores
        if score.key in _CAN_BE_BEATEN and _beaten(score)
    ]
    if beaten:
        found.append(f"Independent columns, which know no relation at all, do better at: {'; '.join(beaten)}.")
    if evaluation.utility is not None:
        found += _lost_classes(evaluation.utility)
    return tuple(found)


def _beaten(score: Score) -> bool:
    """Whether the artificial rows are worse than independent columns, and than real rows, by more than chance does."""
    if score.value is None or score.baseline is None or score.real is None:
        return False
    if score.goal == "high":
        return min(score.baseline, score.real) - score.value > _SLIGHT
    # In a small table even other real rows are further off than independent columns, which repeat its frequencies.
    worse = max(score.baseline, score.real)
    return score.value - worse > max(_SLIGHT, 0.1 * worse)


def _lost_classes(utility: Utility) -> list[str]:
    lost = [entry.label for entry in utility.classes if not entry.share.value and (entry.share.real or 0.0) >= _HARDLY]
    if not lost:
        return []
    names = ", ".join(printable(label) for label in lost)
    return [f"No artificial row has {printable(utility.target)} = {names}, although real rows do."]
