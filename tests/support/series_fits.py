"""Fits of ``statistics`` to made-up series, of which a schema may name a part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import doublure as db


def some(data: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the arrays that a schema's text names, and whose they are."""
    return {name: cells for name, cells in data.items() if f"  {name}:" in text or name == "unit"}


def fit_series(folder: Path, data: dict[str, Any], plan: db.Plan, text: str) -> db.Synthesizer:
    """Fit what a schema's text names, with a ledger in a folder."""
    ledger = db.Ledger.create(folder / "ledger", dataset="days", epsilon=5000.0, delta=0.5)
    return db.fit(some(data, text), plan, ledger=ledger, seed=1)
