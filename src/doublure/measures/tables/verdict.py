"""Verdict on a synthetic table in words."""

from __future__ import annotations

from collections.abc import Sequence

from doublure.errors import counted, printable
from doublure.measures.holdout import seen_warning
from doublure.measures.scores import Score, figure, interval
from doublure.measures.tables.groups import Subgroups
from doublure.measures.tables.marginals import FurthestColumns, Marginals
from doublure.measures.tables.overall import OverallScore
from doublure.measures.tables.relations import RelatedPairs
from doublure.measures.tables.rules import StateRules
from doublure.measures.tables.special_values import SpecialValue, SpecialValues
from doublure.measures.tables.summaries import NumberSummary, round_figure
from doublure.measures.tables.unlisted import UnlistedValues
from doublure.measures.tables.utility import Utility
from doublure.results import Verdict, percent

# Independent columns equal the real columns by construction, one at a time: only other figures can beat them.
_CAN_BE_BEATEN = frozenset(
    {"accuracy", "auc", "average_precision", "macro_f1", "pairs", "association", "quantile_pairs", "k_marginal"}
)
_HARDLY = 0.01
_NOWHERE = 0.02
MOST_NAMED = 3
"""Most columns, pairs or rules that a sentence names."""


def verdict(
    found: Sequence[Score],
    utility: Utility | None,
    groups: Subgroups | None,
    rules: StateRules,
    special: SpecialValues,
    summaries: Sequence[NumberSummary],
    overall: OverallScore,
    marginals: Marginals,
    unlisted: Sequence[UnlistedValues],
    *,
    kept_aside: bool,
) -> Verdict:
    """Return the summary for a reader who reads no further.

    Args:
        found: The scores of an evaluation.
        utility: The prediction figures, if there are any.
        groups: Subgroup accuracy, likewise.
        rules: Combinations that real rows never have.
        special: Zeros, negative numbers, top codes, repeated values.
        summaries: Summary statistics of each number, significant differences first.
        overall: The overall score.
        marginals: Names what is furthest from the real rows, and the relations that are lost.
        unlisted: Columns of which real rows have values outside the synthesizer's list.
        kept_aside: Whether the fit has never seen the real test rows.
    """
    scores = {score.key: score for score in found}
    worst = [_furthest(each, kept_aside=kept_aside) for each in marginals.furthest]
    said = [*say_lost(marginals.relations), *_say_missing(marginals.relations)]
    headline, *lines = [*said, *worst] if marginals.relations and marginals.relations.lost else [*worst, *said]
    if unlisted:
        lines.append(_say_unlisted(unlisted))
    if "overall" in scores:
        lines.append(_overall(scores, overall, marginals.relations, kept_aside=kept_aside))
    if utility is not None:
        lines += _ranking(scores) if utility.imbalanced else _prediction(scores)
    lines.append(_frequencies(scores))
    if "association" in scores:
        lines.append(_association(scores["association"]))
    if groups is not None:
        lines.append(_served_worst(groups))
    warnings = (*_warnings(found, utility, kept_aside), *_incoherent(rules), *_off(special), *_far(summaries))
    return Verdict(headline=headline, lines=tuple(lines), warnings=warnings)


def say_lost(found: RelatedPairs | None, what: str = "pairs of columns") -> list[str]:
    """Return how many relations of real rows are lost and the strongest of them, or that there is none to lose.

    Args:
        found: The relations.
        what: Names the pairs.
    """
    if found is None:
        return []
    if not found.pairs:
        return [f"No {what} clearly depend on one another in the real rows."]
    lost = [pair for pair in found.pairs if pair.lost]
    if not lost:
        return []
    named = [say_pair(pair.names, pair.real, pair.synthetic, pair.rank) for pair in lost[:MOST_NAMED]]
    more = f"; and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    looked = f"{len(found.pairs)} {'strongest ' if found.found > len(found.pairs) else ''}"
    return [
        f"{len(lost)} of the {looked}related {what} lose at least half of their association.",
        f"Lost: {'; '.join(named)}{more}.",
    ]


def count_lost(found: RelatedPairs | None) -> str:
    """Return how many related pairs are lost, in words; empty for none. A mean of scores is not shown without it."""
    lost = 0 if found is None else sum(pair.lost for pair in found.pairs)
    return counted(lost, "lost pair") if lost else ""


def _say_missing(found: RelatedPairs | None) -> list[str]:
    """Return the columns that are no longer missing together, in a sentence."""
    lost = [] if found is None else [pair for pair in found.missing if pair.lost]
    if found is None or not lost:
        return []
    named = [
        f"{' × '.join(map(printable, pair.names))} ({pair.real:.2f} and {pair.synthetic:.2f})"
        for pair in lost[:MOST_NAMED]
    ]
    more = f"; and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    return [
        f"{len(lost)} of the {len(found.missing)} pairs of columns that are missing together lose at least half of "
        f"that (Cramér’s V of being missing, real and synthetic): {'; '.join(named)}{more}."
    ]


def say_pair(
    names: tuple[str, str],
    real: float,
    synthetic: float,
    rank: tuple[float, float] | None = None,
    *,
    records: str = "rows",
) -> str:
    """Return a pair of columns with its association in real and in synthetic records."""
    pair = " × ".join(map(printable, names))
    said = f"{pair}, Cramér’s V {real:.2f} in real {records} and {synthetic:.2f} in synthetic ones"
    if rank is None:
        return said
    ranks = [f"{figure:z.2f}".replace("-", "−") for figure in rank]
    return f"{said} (rank correlation {ranks[0]} and {ranks[1]})"


def _furthest(found: FurthestColumns, *, kept_aside: bool) -> str:
    """Return the column or pair with the largest distance beyond that of other real rows."""
    called, others = "column" if len(found.names) == 1 else "pair", name_others(kept_aside)
    value, real = found.variation.value or 0.0, found.variation.real or 0.0
    said = f"{' × '.join(printable(name) for name in found.names)}, total variation distance (TVD) {percent(value)}"
    if value <= real:
        return f"No {called} is further from the real rows than {others} are. Closest to it: {said} ({percent(real)})."
    return f"Worst {called}: {said} ({others}: {percent(real)})."


def name_others(kept_aside: bool) -> str:
    """Return the name of the real rows that the fitted ones are compared with."""
    return "real rows kept aside" if kept_aside else "a quarter of the fitted rows"


def _say_unlisted(found: Sequence[UnlistedValues]) -> str:
    """Return what the synthesizer's lists do not hold, the worst column first."""
    named = [
        f"{printable(each.column)}, {percent(each.share)} of the real rows ({counted(each.values, 'value')})"
        for each in found[:MOST_NAMED]
    ]
    more = f"; and {counted(len(found) - MOST_NAMED, 'more column')}" if len(found) > MOST_NAMED else ""
    return (
        f"The synthesizer's list lacks values that real rows have, which counts as distance: {'; '.join(named)}{more}. "
        "Declare a longer public list, or buy it for more ε."
    )


def _overall(scores: dict[str, Score], overall: OverallScore, found: RelatedPairs | None, *, kept_aside: bool) -> str:
    score = scores["overall"]
    known = [
        f"{each.score.key} {figure(each.score, each.score.value)}{each.rests_on and f' by {each.rests_on}'}"
        for each in overall.components
        if each.score.value is not None
    ]
    undefined = [each for each in overall.components if each.undefined]
    lost = count_lost(found)
    line = (
        f"Overall score {figure(score, score.value)} of 100{f', a mean that hides {lost}' if lost else ''} "
        f"({', '.join(known)}). 100 is what "
        f"{name_others(kept_aside)} reach; independent columns reach {figure(score, score.baseline)}."
    )
    return line + "".join(f" {each.score.name} cannot be told: {each.reason}." for each in undefined)


def _prediction(scores: dict[str, Score]) -> list[str]:
    accuracy, area = scores["accuracy"], scores["auc"]
    value, real = accuracy.value or 0.0, accuracy.real or 0.0
    line = (
        f"They are right for {percent(value)} of real rows ({interval(accuracy, accuracy.interval)}). Trained on real "
        f"rows they are right for {percent(accuracy.real)}, on independent columns for {percent(accuracy.baseline)}."
    )
    if area.way is not None:
        line += (
            f" They rank rows with an AUC of {figure(area, area.value)} (real rows: {figure(area, area.real)}; "
            f"independent columns: {figure(area, area.baseline)})."
        )
    ends = accuracy.interval or (0.0, 0.0)
    if real - (accuracy.baseline or 0.0) < max(_HARDLY, (ends[1] - ends[0]) / 2):
        return ["Even real rows hardly predict the target better than independent columns do.", line]
    kept = f"{min(100.0, 100 * value / real):.0f}\u00a0%"
    headline = f"Models trained on the synthetic rows reach {kept} of the accuracy that real rows give"
    # Guessing the most frequent class keeps much of an accuracy too: the gain over it says more.
    if accuracy.way is None:
        return [headline + ".", line]
    if accuracy.way < _NOWHERE:
        return [headline + ", no more than independent columns do.", line]
    least = f"{min(100.0, 100 * (accuracy.baseline or 0.0) / real):.0f}\u00a0%"
    return [f"{headline} (independent columns: {least}).", line]


def _ranking(scores: dict[str, Score]) -> list[str]:
    """Return the sentences on a target with one common class, for which accuracy says little."""
    area, precision = scores["auc"], scores["average_precision"]
    line = (
        f"One class is so common that accuracy says little. Average precision is {figure(precision, precision.value)}; "
        f"after training on real rows {figure(precision, precision.real)}, on independent columns "
        f"{figure(precision, precision.baseline)}."
    )
    value, real, least = area.value or 0.0, area.real or 0.0, area.baseline or 0.0
    if real - max(least, 0.5) < _HARDLY:
        return ["Even real rows hardly predict the target better than independent columns do.", line]
    headline = (
        f"Models trained on the synthetic rows rank real rows with an AUC of {figure(area, value)}, those trained on "
        f"real rows with {figure(area, real)}"
    )
    if area.way is None:
        return [headline + ".", line]
    if area.way < _NOWHERE:
        return [headline + ", no better than independent columns do.", line]
    return [f"{headline} (independent columns: {figure(area, least)}).", line]


def _frequencies(scores: dict[str, Score]) -> str:
    one = scores["quantile_columns"]
    text = (
        f"Total variation distance (TVD) from the real rows: {percent(one.value)} for a column (other real rows: "
        f"{percent(one.real)})"
    )
    if "quantile_pairs" not in scores:
        return text + "."
    two = scores["quantile_pairs"]
    return (
        f"{text}, {percent(two.value)} for a pair of columns (other real rows: {percent(two.real)}; "
        f"independent columns: {percent(two.baseline)})."
    )


def _association(score: Score) -> str:
    return (
        f"The strength of association between two columns is off by {figure(score, score.value)} on a scale from 0 "
        f"to 1 (other real rows: {figure(score, score.real)}; independent columns: {figure(score, score.baseline)})."
    )


def _served_worst(groups: Subgroups) -> str:
    clear = [group for group in groups.groups if group.clear]
    if not groups.groups:
        return "No public group is large enough to be looked at on its own."
    every_row = f"all rows: {100 * groups.everybody.loss:.1f}"
    if not clear:
        return f"Subgroup accuracy: none of {len(groups.groups)} public groups clearly loses more than all rows do."
    worst = clear[0]
    others = _lose_too([100 * group.loss for group in clear[1:]])
    return (
        f"Subgroup accuracy: {printable(worst.column)} = {printable(worst.value)} loses most against training on real "
        f"rows, {100 * worst.loss:.1f} points ({every_row}; {counted(worst.rows, 'row')} in it).{others}"
    )


def _lose_too(points: Sequence[float]) -> str:
    """Return the number of further groups that lose more than all rows do, and their losses."""
    if not points:
        return ""
    ends = sorted({f"{min(points):.1f}", f"{max(points):.1f}"}, key=float)
    if len(points) == 1:
        return f" One more group loses more than all rows do, {ends[0]} points."
    return f" {counted(len(points), 'more group')} lose more than all rows do, {' to '.join(ends)} points."


def _warnings(scores: Sequence[Score], utility: Utility | None, kept_aside: bool) -> tuple[str, ...]:
    found = seen_warning(kept_aside)
    if beaten := [score.name[:1].lower() + score.name[1:] for score in beaten_scores(scores)]:
        found.append(f"Independent columns, which know no relation at all, do better at: {'; '.join(beaten)}.")
    if utility is not None:
        found += _lost_classes(utility)
    return tuple(found)


def beaten_scores(scores: Sequence[Score]) -> list[Score]:
    """Return the figures at which independent columns do better, though nothing makes them right there."""
    return [score for score in scores if score.key in _CAN_BE_BEATEN and score.beaten]


def _incoherent(rules: StateRules) -> list[str]:
    """Return the warning where more rows break a rule than real rows kept aside do."""
    value, real = rules.score.value or 0.0, rules.score.real or 0.0
    if value < max(_HARDLY, 2 * real):
        return []
    named = [f"{printable(rule.sentence)} ({percent(rule.broken.value)})" for rule in rules.rules[:MOST_NAMED]]
    return [
        f"{percent(value)} of the synthetic rows break a rule (found in the real rows, not declared; other real rows: "
        f"{percent(real)}): {'; '.join(named)}. If one holds in every such table, declare it under constraints."
    ]


def _off(special: SpecialValues) -> list[str]:
    """Return the warning where zeros, negative numbers, top codes or repeated values are off."""
    off = [value for value in special.values if value.off]
    if not off:
        return []
    named = [
        f"{printable(value.column)} {value.label}: {percent(value.share.value)} (real {percent(value.share.real)})"
        for value in off[:MOST_NAMED]
    ]
    more = f" and {len(off) - MOST_NAMED} more" if len(off) > MOST_NAMED else ""
    return [f"Off by a hundredth of the rows or more: {'; '.join(named)}{more}.{_steps(off)}"]


def _steps(off: Sequence[SpecialValue]) -> str:
    """Return the advice to declare a step where multiples are lost."""
    lost = [value for value in off if value.what == "multiple" and value.value is not None]
    if not lost:
        return ""
    named = [f"step: {value.value:.12g} of {printable(value.column)}" for value in lost[:MOST_NAMED]]
    return f" Declare {', '.join(named)}, if that is public: every cell becomes a multiple of its step."


def _far(summaries: Sequence[NumberSummary]) -> list[str]:
    """Return the warnings on a number's statistics, one per column, the mean first."""
    off: dict[str, NumberSummary] = {}
    for entry in sorted((entry for entry in summaries if entry.off), key=lambda entry: entry.what != "mean"):
        off.setdefault(entry.column, entry)
    if not off:
        return []
    named = [
        f"{printable(entry.column)}, {entry.what} {round_figure(entry.value, entry.kind)} "
        f"(real {round_figure(entry.real, entry.kind)})"
        for entry in list(off.values())[:MOST_NAMED]
    ]
    more = f" and {counted(len(off) - MOST_NAMED, 'more column')}" if len(off) > MOST_NAMED else ""
    return [f"Do not rely on these totals and averages: {'; '.join(named)}{more}."]


def _lost_classes(utility: Utility) -> list[str]:
    lost = [entry.label for entry in utility.classes if not entry.share.value and (entry.share.real or 0.0) >= _HARDLY]
    if not lost:
        return []
    names = ", ".join(printable(label) for label in lost)
    return [f"No synthetic row has {printable(utility.target)} = {names}, although real rows do."]
