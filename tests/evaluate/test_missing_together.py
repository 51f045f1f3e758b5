"""Relations of a survey are judged among answers; which questions are skipped together is told once, as such."""

import numpy as np
import pandas as pd
import pytest

from doublure.measures.tables.coding import Coder
from doublure.measures.tables.fidelity import Tables
from doublure.measures.tables.marginals import marginals
from doublure.measures.tables.verdict import _say_missing
from doublure.schema import Schema

ROWS = 2_000
SCHEMA = Schema.parse(
    "doublure: 1\nkind: table\nunits: 2000\ncolumns:\n"
    + "".join(f"  {name}: {{type: category, values: [a, b, c], missing: true}}\n" for name in "pqr")
    + "  s: {type: category, values: [a, b, c], missing: false}\n"
).resolve({})


def survey(seed: int, *, together: bool, related: bool) -> pd.DataFrame:
    """Return answers: p and q are skipped together, or apart, and r goes with s, or not."""
    draw = np.random.default_rng(seed)
    made = pd.DataFrame({name: draw.choice(list("abc"), ROWS) for name in "pqrs"})
    made["r"] = np.where(draw.random(ROWS) < 0.8, made["s"], made["r"]) if related else made["r"]
    skipped = draw.random(ROWS) < 0.3
    made.loc[skipped, "p"] = None
    made.loc[skipped if together else draw.random(ROWS) < 0.3, "q"] = None
    made.loc[draw.random(ROWS) < 0.2, "r"] = None
    return made


def compared(synthetic: pd.DataFrame):
    coder = Coder(schema=SCHEMA)
    train, own, holdout = (
        coder.read(frame, "the table")
        for frame in (survey(1, together=True, related=True), synthetic, survey(2, together=True, related=True))
    )
    baseline = coder.read(survey(3, together=False, related=False), "the table")
    tables = Tables(train=train, synthetic=own, baseline=baseline, holdout=holdout)
    return marginals(coder, tables, np.random.default_rng(0)).relations


def test_what_is_skipped_together_is_no_relation_of_answers() -> None:
    found = compared(survey(4, together=True, related=True))
    assert [pair.names for pair in found.pairs] == [("r", "s")]
    assert [pair.names for pair in found.missing] == [("p", "q")]
    assert found.missing[0].real == pytest.approx(1, abs=0.01)
    assert (found.lost, found.missing[0].lost, _say_missing(found)) == (0, False, [])
    assert found.pairs[0].real == pytest.approx(0.8, abs=0.05)  # of answered rows: missing ones took from it


def test_each_loss_is_told_as_what_it_is() -> None:
    apart = compared(survey(4, together=False, related=True))
    assert (apart.lost, apart.missing[0].lost) == (0, True)
    assert _say_missing(apart) == [
        "1 of the 1 pairs of columns that are missing together lose at least half of that (Cramér’s V of being "
        f"missing, real and synthetic): p × q ({apart.missing[0].real:.2f} and {apart.missing[0].synthetic:.2f})."
    ]
    unrelated = compared(survey(4, together=True, related=False))
    assert (unrelated.lost, unrelated.missing[0].lost) == (1, False)
    assert apart.association.value < 0.1 < unrelated.association.value
