"""Evaluate an understudy: sample it, and hold the sample against the real table."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Protocol

import pandas as pd

from doublure.data.tables import open_table
from doublure.errors import SettingError
from doublure.evaluate.scores import Result, Score
from doublure.evaluate.table import INTERNAL, TableEvaluation, evaluate_table
from doublure.evaluate.words import Verdict, verdict
from doublure.schema import ResolvedSchema

MOST_SAMPLED = 200_000
"""The most artificial rows that are drawn unless asked otherwise."""


class _Guarantee(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def sentence(self) -> str: ...


class _Plan(Protocol):
    @property
    def method(self) -> str: ...


class Understudy(Protocol):
    """What is evaluated: a fitted synthesizer."""

    @property
    def schema(self) -> ResolvedSchema:
        """Every fact known."""

    @property
    def guarantee(self) -> _Guarantee:
        """What may be claimed."""

    @property
    def plan(self) -> _Plan:
        """What was done."""

    def sample(self, n: int, *, seed: int | None = None) -> pd.DataFrame:
        """Return ``n`` artificial rows."""


class About(Result):
    """Whose rows were evaluated, and what may be claimed about them."""

    method: str
    guarantee_kind: str
    guarantee: str
    unit: str
    schema_sha256: str
    created: str


class Report(Result):
    """An understudy's evaluation. Computed on real data: internal.

    Attributes:
        about: Whose rows these are; null for a table of unknown origin.
        table: Everything that was measured.
    """

    about: About | None = None
    table: TableEvaluation

    @property
    def scores(self) -> tuple[Score, ...]:
        """The headline figures."""
        return self.table.scores

    @property
    def verdict(self) -> Verdict:
        """The evaluation in plain words."""
        return verdict(self.table)

    def to_json(self) -> str:
        """Return JSON text; what is not known is null."""
        return self.model_dump_json(indent=1)

    def save(self, html: str | Path, json: str | Path | None = None) -> None:
        """Write the page, and its figures as JSON if asked; both readable by the owner only.

        Raises:
            InputError: A file cannot be written.
        """
        from doublure.report import write_internal

        write_internal(self, html, json)

    def __repr__(self) -> str:
        return f"Report({INTERNAL})"

    def __str__(self) -> str:
        said = self.verdict
        warnings = (f"! {line}" for line in said.warnings)
        return "\n".join([f"INTERNAL: {INTERNAL}", said.headline, *said.lines, *warnings])


def report(
    syn: Understudy,
    real: str | Path | pd.DataFrame,
    holdout: str | Path | pd.DataFrame | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
) -> Report:
    """Compare what an understudy says with real rows. The result is internal: do not publish it.

    Args:
        syn: A fitted synthesizer.
        real: The table it was fitted on.
        holdout: Real rows it has never seen. Without them a fixed quarter of ``real`` is used for testing.
        rows: How many artificial rows to draw; as many as ``real`` has, at most 200,000, if not given.
        seed: Fixes the sample and every random choice of the evaluation.

    Raises:
        DataError: A table does not fit the schema.
        SettingError: ``rows`` is not positive.
    """
    if rows is not None and rows < 1:
        raise SettingError("must be at least 1", field="rows", remedy="leave it out to draw as many as the real table")
    schema = _lenient(syn.schema)
    train = open_table(real).load(schema)
    kept = None if holdout is None else open_table(holdout).load(schema, at_least=1).frame
    wanted = rows if rows is not None else min(len(train.frame), MOST_SAMPLED)
    artificial = syn.sample(wanted, seed=seed)
    about = About(
        method=syn.plan.method,
        guarantee_kind=syn.guarantee.kind,
        guarantee=syn.guarantee.sentence,
        unit=syn.schema.unit.name,
        schema_sha256=syn.schema.sha256,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )
    table = evaluate_table(syn.schema, artificial, train.frame, kept, unit=train.unit, seed=seed)
    return Report(about=about, table=table)


def _lenient(schema: ResolvedSchema) -> ResolvedSchema:
    """Allow missing cells where a noisy answer said that there are none: the measure counts them as missing."""
    columns = {
        name: column if column.may_be_missing else column.model_copy(update={"missing": True})
        for name, column in schema.columns.items()
    }
    return schema.model_copy(update={"columns": columns})
