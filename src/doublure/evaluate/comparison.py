"""Several synthesizers of the same data, side by side: the same real rows, the same tests, one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Literal

import numpy as np

from doublure.data.opening import Given
from doublure.errors import SettingError
from doublure.evaluate.evaluation import reported
from doublure.guarantee import figure
from doublure.intervals import Interval, Result
from doublure.measures.holdout import seen_warning
from doublure.measures.resampling import Resamples, together
from doublure.measures.scores import Score, SideBySide, amount, loss
from doublure.report.display import comparison_html
from doublure.report.files import Saved
from doublure.results import INTERNAL, Document
from doublure.run.synthesizer import Synthesizer
from doublure.schema.kinds import KINDS
from doublure.support.progress import Progress

UNLIKE = "These claims differ: a run that spends more should be better. Compare methods at the same ε, δ and unit."
_KEY = (
    "* best, or no clear difference from the best. In brackets: how far behind the best, 95 % for all figures together "
    "(paired bootstrap of rows). Without an interval nothing is marked."
)
_LARGE = 100.0  # figures from 0 to 100 or 1000 need no thousandths


class Contender(Result):
    """One synthesizer and its figures.

    Attributes:
        name: What it is called here: its run folder.
        method: How it was made.
        kind: The kind of its guarantee.
        guarantee: The guarantee's sentence.
        epsilon: Its ε, if it has one.
        delta: Its δ, if it has one.
        unit: Whom it protects.
        max_records: How many records of one are covered.
        suspicion: Why the real records may be its own synthetic ones, if they may.
        scores: Its figures; another run may have others.
    """

    name: str
    method: str
    kind: str
    guarantee: str
    epsilon: float | None = None
    delta: float | None = None
    unit: str
    max_records: int
    suspicion: str | None = None
    scores: tuple[Score, ...]

    @property
    def title(self) -> str:
        """What tells a run from another for a reader: its method and its ε."""
        return self.method if self.epsilon is None else f"{self.method}, ε = {figure(self.epsilon)}"

    @property
    def claim(self) -> tuple[object, ...]:
        """What has to be equal in two contenders that are compared fairly; neighbours add or remove a unit in all."""
        return self.kind, self.epsilon, self.delta, self.unit, self.max_records


class PairedDifference(Result):
    """By how much one run's figure is better than another's.

    Attributes:
        key: The figure's key, and
        name: its name.
        first: The one run, and
        second: the other, by their names.
        value: How much better the first is: nearer to what is good, in the figure's unit.
        interval: What the difference would be with other rows, real ones shared by both: all intervals of a comparison
            hold in 95 of 100 repetitions.
    """

    key: str
    name: str
    first: str
    second: str
    value: float
    interval: Interval


class Comparison(Document, Saved):
    """Synthesizers side by side. Computed on real data: internal.

    Attributes:
        records: What the records are called.
        least: The least to expect, whose figures stand below.
        kept_aside: Whether no fit has seen the records that test it.
        contenders: The synthesizers, in the order they were named.
        paired: Of every figure that is resampled, and every two runs, by how much they differ.
    """

    page: ClassVar[Literal["comparison"]] = "comparison"

    version: Literal[1] = 1
    internal: str = INTERNAL
    records: str = "rows"
    least: str = "independent columns"
    kept_aside: bool
    contenders: tuple[Contender, ...]
    paired: tuple[PairedDifference, ...] = ()

    def _repr_html_(self) -> str:
        return comparison_html(self, [f"{one.name} ({one.title})" for one in self.contenders], self.internal)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader has to know before any figure."""
        found = [f"{one.suspicion} (Run: {one.name}.)" for one in self.contenders if one.suspicion is not None]
        found += seen_warning(self.kept_aside, self.records)
        if len({one.claim for one in self.contenders}) > 1:
            found.append(UNLIKE)
        return (*found, *self.differences)

    @property
    def side_by_side(self) -> tuple[SideBySide, ...]:
        """Every figure that some contender has, in the order of the contender who has most.

        A figure is known by key and name together: classifiers of images share a key.
        """
        known = [{(score.key, score.name): score for score in one.scores} for one in self.contenders]
        asked = {key: score for one in sorted(known, key=len, reverse=True) for key, score in one.items()}
        places = {one.name: place for place, one in enumerate(self.contenders)}
        ends: dict[tuple[str, str], dict[tuple[int, int], Interval]] = {}
        for each in self.paired:
            ends.setdefault((each.key, each.name), {})[places[each.first], places[each.second]] = each.interval
        return tuple(
            SideBySide(score=score, scores=tuple(one.get(key) for one in known), intervals=ends.get(key, {}))
            for key, score in asked.items()
        )

    @property
    def asked_the_same(self) -> bool:
        """Whether all were, exactly: of one schema, and with nothing in it that each has bought for itself."""
        return all(entry.same for entry in self.side_by_side)

    @property
    def differences(self) -> tuple[str, ...]:
        """Where contenders cannot be held against one another, as where their schemas differ; nothing if they can."""
        figures, found = self.side_by_side, []
        for place, one in enumerate(self.contenders):
            missing = [entry.score.name for entry in figures if entry.scores[place] is None]
            if missing:
                found.append(f"Not measured for {one.name} (a dash in its row): {', '.join(missing)}.")
        unlike = [entry.score.name for entry in figures if not entry.one_scale]
        if unlike:
            found.append(
                f"The scales of these differ from run to run: {', '.join(unlike)}. Compare each run with its own "
                f"{self.least} and real {self.records}."
            )
        return tuple(found)

    def __str__(self) -> str:
        """Return a table for a terminal: a figure a line, a run a column, with how far each is behind the best."""
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return the table of :meth:`__str__` for lines of some width.

        Args:
            width: How many characters a line has room for: columns that find none follow below. None: no end.
        """
        words = {"low": "low", "high": "high", "near": "as real"}
        names = ["", *(one.name for one in self.contenders), self.least, f"real {self.records}", "good is"]
        titles = ["", *(one.title for one in self.contenders), "", "", ""]
        lines = [
            [
                entry.score.name,
                *(_cell(entry, place) for place in range(len(entry.scores))),
                _against(entry, entry.score.baseline),
                _against(entry, entry.score.real),
                words[entry.score.goal],
            ]
            for entry in self.side_by_side
        ]
        claims = [f"{one.name}: {one.guarantee}" for one in self.contenders]
        warnings = (f"! {line}" for line in self.warnings)
        table = _set_out([names, titles, *lines], width)
        return "\n".join([f"INTERNAL: {INTERNAL}", *warnings, *table, *([_KEY] if len(claims) > 1 else []), *claims])


def _set_out(table: list[list[str]], room: int | None) -> list[str]:
    """Return lines of columns that stand under one another; the first column begins every block."""
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    blocks: list[list[int]] = []
    used = 0
    for place, width in enumerate(widths[1:], 1):
        if not blocks or (room is not None and used + 2 + width > room):
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(place)
        used += 2 + width
    lines = []
    for places in blocks:
        shown = ("  ".join(line[place].ljust(widths[place]) for place in places).rstrip() for line in table)
        lines += [*filter(None, shown), ""]
    return lines


def compare(
    synthesizers: Mapping[str, Synthesizer],
    real: Given,
    holdout: Given | None = None,
    *,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> Comparison:
    """Evaluate synthesizers of the same data in the same way.

    Args:
        synthesizers: Name -> synthesizer; all of them under the same columns.
        real: The records that they were learned from.
        holdout: Real records kept aside.
        seed: Fixes every random choice made here.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Raises:
        SettingError: There is none, or they have other columns or another target.
    """
    if not synthesizers:
        raise SettingError("names no run", field="runs", remedy="name a run folder or more")
    columns = {name: list(one.schema.columns) for name, one in synthesizers.items()}
    if len({(one.schema.kind, *columns[name]) for name, one in synthesizers.items()}) > 1:
        raise SettingError("have different columns", field="runs", remedy="compare runs of the same schema")
    if len({target for one in synthesizers.values() for target in one.schema.with_role("target")}) > 1:
        raise SettingError("predict different targets", field="runs", remedy="compare runs with the same target column")
    contenders, resampled = [], []
    for number, (name, synthesizer) in enumerate(synthesizers.items()):
        resampled.append(Resamples(seed=seed, run=number))
        found = reported(synthesizer, real, holdout, seed=seed, progress=progress, resamples=resampled[-1])
        contenders.append(
            Contender(
                name=name,
                method=synthesizer.plan.method,
                kind=synthesizer.guarantee.kind,
                guarantee=synthesizer.guarantee.sentence,
                epsilon=synthesizer.guarantee.epsilon,
                delta=synthesizer.guarantee.delta,
                unit=synthesizer.guarantee.unit,
                max_records=synthesizer.guarantee.max_records,
                suspicion=found.suspicion,
                scores=found.measured.scores,
            )
        )
    kind = KINDS[next(iter(synthesizers.values())).schema.kind]
    compared = Comparison(
        records=kind.records, least=kind.least, kept_aside=holdout is not None, contenders=tuple(contenders)
    )
    return compared.model_copy(update={"paired": _paired(compared, resampled)})


def _paired(found: Comparison, resampled: Sequence[Resamples]) -> tuple[PairedDifference, ...]:
    """Return the differences of every two runs in every figure that both have resamples of, on one scale."""
    entries, drawn = [], []
    for entry in found.side_by_side:
        losses = [_resampled_loss(score, own) for score, own in zip(entry.scores, resampled, strict=True)]
        for first, second in combinations(range(len(losses)) if entry.one_scale else (), 2):
            if losses[first] is not None and losses[second] is not None:
                entries.append((entry, first, second))
                drawn.append(losses[second] - losses[first])
    if not entries:
        return ()
    reach = together(np.stack(drawn, axis=1))
    names = [one.name for one in found.contenders]
    return tuple(
        PairedDifference(
            key=entry.score.key,
            name=entry.score.name,
            first=names[first],
            second=names[second],
            value=(value := entry.difference(first, second).value),
            interval=(value - half, value + half),
        )
        for (entry, first, second), half in zip(entries, reach.tolist(), strict=True)
    )


def _resampled_loss(score: Score | None, resamples: Resamples) -> Any:
    """Return how far each resample's figure is from what is good; None where the figure is not resampled."""
    if score is None or score.value is None:
        return None
    key = next((key for key in (f"{score.key} {score.name}", score.key) if key in resamples.figures), score.key)
    real = resamples.of(key, "real")
    return loss(score, resamples.of(key), score.real if real is None else real)


def _figure(score: Score, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if score.width >= _LARGE else f"{value:.3f}"


def _against(entry: SideBySide, value: float | None) -> str:
    return _figure(entry.score, value) if entry.one_scale else "differs"


def _cell(entry: SideBySide, place: int) -> str:
    score, first = entry.scores[place], entry.first
    if score is None or score.value is None:
        return "–"
    text = _figure(score, score.value) + ("*" if place in entry.best else "")
    if first is None or first == place:
        return text
    behind = entry.difference(first, place).interval
    return f"{text} ({'no interval' if behind is None else amount(score, *behind)})"
