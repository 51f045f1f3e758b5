"""Fits of ``statistics`` to made-up series, of which a schema may name a part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doublure as db
from doublure.data.series import Series
from doublure.encode.series_places import SeriesPlaces
from doublure.private.mechanism import Mechanism
from doublure.private.queries.query import Answer, Query
from doublure.private.records import PrivateRecords


def some(data: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the arrays that a schema's text names, and whose they are."""
    return {name: cells for name, cells in data.items() if f"  {name}:" in text or name == "unit"}


def fit_series(folder: Path, data: dict[str, Any], plan: db.Plan, text: str) -> db.Synthesizer:
    """Fit what a schema's text names, with a ledger in a folder."""
    ledger = db.Ledger.create(folder / "ledger", dataset="days", epsilon=5000.0, delta=0.5)
    return db.fit(some(data, text), plan, ledger=ledger, seed=1)


def answers_of(
    fit: Callable[[], db.Synthesizer], **encoding: Any
) -> tuple[list[str], list[Query[Any]], Callable[[Series], list[Answer]]]:
    """Return what every query of a fit by a copula pays with and is, and what all answer, exactly, for other series.

    Args:
        fit: Fits.
        encoding: Of its places.
    """
    queries, released = [], Mechanism.release

    def watched(mechanism: Any, query: Any, access: Any, records: Any, **more: Any) -> Any:
        queries.append((access.purpose, query))
        return released(mechanism, query, access, records)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mechanism, "release", watched)
        encoder = SeriesPlaces(fit().schema, **encoding)

    def ask(series: Series) -> list[Answer]:
        compact = encoder.compact(series)
        kept = PrivateRecords(
            compact, np.arange(len(compact)), len(compact), lambda rows: encoder.split(encoder.expand(rows))
        )
        return [query.answer(kept, sample_rate=1.0) for _, query in queries]

    return [purpose for purpose, _ in queries], [query for _, query in queries], ask
