"""Comparison of synthesizers of the same data, with the same real rows and the same tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from doublure.data.opening import Given
from doublure.errors import SettingError
from doublure.evaluate.evaluation import make_report, require_synthesizer
from doublure.measures.resampling import Resamples, simultaneous_widths
from doublure.measures.scores import Score, loss, possible
from doublure.report.comparison import ComparedRun, Comparison, PairedDifference
from doublure.run.synthesizer import Synthesizer
from doublure.schema.kinds import KINDS
from doublure.support.progress import Progress


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
        synthesizers: Name -> synthesizer; all with the same columns.
        real: The records they were fitted on.
        holdout: Real records kept aside.
        seed: Fixes every random choice made here.
        progress: Receives progress events; None: a line where it is seen, False: nothing.

    Raises:
        SettingError: There is none, or they have different columns or targets.

    Example:
        >>> found = db.evaluate.compare({"statistics": syn}, "people.csv", "kept.csv", progress=False)
        >>> [contender.name for contender in found.contenders]
        ['statistics']
    """
    if not synthesizers:
        raise SettingError("names no run", field="runs", remedy="name a run folder or more")
    for each in synthesizers.values():
        require_synthesizer(each)
    columns = {name: list(one.schema.columns) for name, one in synthesizers.items()}
    if len({(one.schema.kind, *columns[name]) for name, one in synthesizers.items()}) > 1:
        raise SettingError("have different columns", field="runs", remedy="compare runs of the same schema")
    if len({target for one in synthesizers.values() for target in one.schema.with_role("target")}) > 1:
        raise SettingError("predict different targets", field="runs", remedy="compare runs with the same target column")
    contenders, resampled = [], []
    for number, (name, synthesizer) in enumerate(synthesizers.items()):
        resampled.append(Resamples(seed=seed, run=number))
        found = make_report(synthesizer, real, holdout, seed=seed, progress=progress, resamples=resampled[-1])
        contenders.append(
            ComparedRun(
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
    """Return the differences of every two runs, for every figure with resamples of both on one scale."""
    entries, drawn = [], []
    for entry in found.side_by_side:
        losses = [_resampled_loss(score, own) for score, own in zip(entry.scores, resampled, strict=True)]
        for first, second in combinations(range(len(losses)) if entry.one_scale else (), 2):
            if losses[first] is not None and losses[second] is not None:
                entries.append((entry, first, second))
                drawn.append(losses[second] - losses[first])
    if not entries:
        return ()
    reach = simultaneous_widths(np.stack(drawn, axis=1))
    names = [one.name for one in found.contenders]
    return tuple(
        PairedDifference(
            key=entry.score.key,
            name=entry.score.name,
            first=names[first],
            second=names[second],
            value=(value := entry.difference(first, second).value),
            interval=possible(entry.score, (value - half, value + half)),
        )
        for (entry, first, second), half in zip(entries, reach.tolist(), strict=True)
    )


def _resampled_loss(score: Score | None, resamples: Resamples) -> Any:
    """Return the loss of each resample's figure; None where the figure is not resampled."""
    if score is None or score.value is None:
        return None
    key = next((key for key in (f"{score.key} {score.name}", score.key) if key in resamples.figures), score.key)
    real = resamples.of(key, "real")
    return loss(score, resamples.of(key), score.real if real is None else real)
