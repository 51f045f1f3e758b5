"""Several understudies of the same data, side by side: the same real rows, the same tests, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from doublure.data.opening import Given
from doublure.errors import SettingError
from doublure.evaluate.holdout import SEEN
from doublure.evaluate.scores import Score
from doublure.evaluate.table import INTERNAL
from doublure.evaluate.understudy import Understudy, report
from doublure.figures import Result
from doublure.progress import Progress
from doublure.schema.kinds import RECORDS

UNLIKE = (
    "These claims differ: who spends more should be better. Compare methods at the same ε and δ, for the same unit."
)

_LEAST = {"table": "independent columns", "images": "class means", "series": "independent steps"}


class Contender(Result):
    """One understudy and its figures.

    Attributes:
        name: What it is called here: its run folder.
        method: How it was made.
        kind: The kind of its guarantee.
        guarantee: The guarantee's sentence.
        epsilon: Its ε, if it has one.
        delta: Its δ, if it has one.
        unit: Whom it protects.
        max_records: How many records of one are covered.
        scores: Its figures, in the same order for all.
    """

    name: str
    method: str
    kind: str
    guarantee: str
    epsilon: float | None = None
    delta: float | None = None
    unit: str
    max_records: int
    scores: tuple[Score, ...]

    @property
    def claim(self) -> tuple[object, ...]:
        """What has to be equal in two contenders that are compared fairly; neighbours add or remove a unit in all."""
        return self.kind, self.epsilon, self.delta, self.unit, self.max_records


class Comparison(Result):
    """Understudies side by side. Computed on real data: internal.

    Attributes:
        records: What the records are called.
        least: The least to expect, whose figures stand below.
        kept_aside: Whether no fit has seen the records that test it.
        contenders: The understudies, in the order they were named.
    """

    version: Literal[1] = 1
    internal: str = INTERNAL
    records: str = "rows"
    least: str = "independent columns"
    kept_aside: bool
    contenders: tuple[Contender, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader has to know before any figure."""
        found = [] if self.kept_aside else [SEEN.replace("rows", self.records)]
        if len({one.claim for one in self.contenders}) > 1:
            found.append(UNLIKE)
        return tuple(found)

    def save(self, html: str | Path, json: str | Path | None = None) -> None:
        """Write the page, and its figures as JSON if asked; both readable by the owner only.

        Raises:
            InputError: A file cannot be written.
        """
        from doublure.report import write_internal

        write_internal(self, html, json)

    def to_json(self) -> str:
        """Return JSON text; what is not known is null."""
        return self.model_dump_json(indent=1)

    def __str__(self) -> str:
        """Return a table for a terminal: a figure a column, with its interval where one is known."""
        first = self.contenders[0].scores
        heads = ["", "method", *(score.name for score in first)]
        lines = [[one.name, one.method, *(_cell(score) for score in one.scores)] for one in self.contenders]
        lines.append([self.least, "", *(_figure(score.baseline) for score in first)])
        lines.append([f"real {self.records}", "", *(_figure(score.real) for score in first)])
        goals = ["", "good is", *({"low": "low", "high": "high", "near": "as real"}[score.goal] for score in first)]
        table = [heads, *lines, goals]
        widths = [max(len(line[place]) for line in table) for place in range(len(heads))]
        rows = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table
        ]
        claims = [f"{one.name}: {one.guarantee}" for one in self.contenders]
        warnings = (f"! {line}" for line in self.warnings)
        return "\n".join([f"INTERNAL: {INTERNAL}", *warnings, *rows, "", *claims])


def compare(
    understudies: Mapping[str, Understudy],
    real: Given,
    holdout: Given | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Evaluate understudies of the same data in the same way.

    Args:
        understudies: Name -> understudy; all of them under the same columns.
        real: The records that they were learned from.
        holdout: Real records kept aside.
        seed: Fixes every random choice made here.
        progress: Who listens.

    Raises:
        SettingError: There is none, or they have other columns.
    """
    if not understudies:
        raise SettingError("has none to compare", field="runs", remedy="name a run folder or more")
    columns = {name: list(one.schema.columns) for name, one in understudies.items()}
    if len({(one.schema.kind, *columns[name]) for name, one in understudies.items()}) > 1:
        raise SettingError("were made under other columns", field="runs", remedy="compare runs of the same schema")
    contenders = []
    for name, understudy in understudies.items():
        contenders.append(
            Contender(
                name=name,
                method=understudy.plan.method,
                kind=understudy.guarantee.kind,
                guarantee=understudy.guarantee.sentence,
                epsilon=understudy.guarantee.epsilon,
                delta=understudy.guarantee.delta,
                unit=understudy.guarantee.unit,
                max_records=understudy.guarantee.max_records,
                scores=report(understudy, real, holdout, seed=seed, loss=False, progress=progress).scores,
            )
        )
    kind = next(iter(understudies.values())).schema.kind
    return Comparison(
        records=RECORDS[kind], least=_LEAST[kind], kept_aside=holdout is not None, contenders=tuple(contenders)
    )


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _cell(score: Score) -> str:
    if score.value is None or score.interval is None:
        return _figure(score.value)
    return f"{score.value:.3f} ({score.interval[0]:.3f}–{score.interval[1]:.3f})"
