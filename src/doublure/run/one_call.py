"""``synthesize()``: plan, ledger, fit and sample in one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure.ledger import Ledger
from doublure.ledger.places import find_place
from doublure.planning import plan
from doublure.run.fitting import fit

if TYPE_CHECKING:
    from doublure.data.opening import Given
    from doublure.schema import Schema


def synthesize(
    data: Given,
    schema: Schema | str | Path,
    *,
    epsilon: float,
    delta: float,
    ledger: Ledger | str | Path,
    n: int | None = None,
    method: str = "auto",
    seed: int | None = None,
    out: str | Path | None = None,
    **settings: Any,
) -> Any:
    """Return synthetic records of private ones: a plan, its ledger, a fit and a sample in one call.

    Args:
        data: The records, as :func:`doublure.fit` takes them.
        schema: What is public of them, or its file.
        epsilon: The ε of the fit.
        delta: Its δ.
        ledger: What the data set has spent. Where none is, one is made whose cap is this fit alone: a second call is
            refused until a larger cap is decided on, by :meth:`doublure.Ledger.create`.
        n: Number of records; left out, the schema's public number of units.
        method: As :func:`doublure.plan` takes it.
        seed: As :func:`doublure.fit` takes it.
        out: A new run folder, from which :func:`doublure.load` goes on: to release, evaluate or sample again.
        settings: Of the method.

    Returns:
        As :meth:`doublure.Synthesizer.sample`: of a table a ``pandas.DataFrame``.

    Raises:
        InputError: As :func:`doublure.plan` and :func:`doublure.fit`.
        BudgetRefused: The ledger's cap would be passed; the data was not opened.

    Example:
        >>> import pandas as pd
        >>> rows = db.synthesize(
        ...     pd.read_csv("people.csv"), "people.schema.yaml", epsilon=1.0, delta=1e-5, ledger="once.ledger", n=5
        ... )
        >>> len(rows)
        5
    """
    made = plan(schema, method=method, epsilon=epsilon, delta=delta, **settings)
    if not isinstance(ledger, Ledger):
        place = find_place(ledger)
        dataset = place.name.removesuffix(".ledger")
        known = place.exists()
        ledger = Ledger.open(ledger) if known else Ledger.create(ledger, dataset=dataset, epsilon=epsilon, delta=delta)
    return fit(data, made, ledger=ledger, out=out, seed=seed).sample(n, seed=seed)
