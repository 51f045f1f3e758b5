"""Rows of a person that no longer belong together are seen, though the table is the same row by row."""

from __future__ import annotations

import numpy as np
import pandas as pd

import doublure as db
from doublure.measures.relational.evaluation import visit_scores

TEXT = """
doublure: 1
kind: table
unit: {name: patient, id: nr, per_unit: [sex], max_records: 4, order: day}
units: 600
defaults: {missing: false}
columns:
  nr: {type: id}
  sex: {type: category, values: [f, m]}
  day: {type: integer, bounds: [0, 999]}
  ward: {type: category, values: [heart, lung, skin]}
"""


def stays(seed: int) -> pd.DataFrame:
    """Return stays of 600 patients, each in one ward and within a month."""
    draw = np.random.default_rng(seed)
    who = np.repeat(np.arange(600), draw.integers(1, 5, 600))
    first = draw.integers(0, 900, 600)[who]
    return pd.DataFrame(
        {
            "nr": who,
            "sex": draw.choice(["f", "m"], 600)[who],
            "day": first + draw.integers(0, 30, len(who)),
            "ward": draw.choice(["heart", "lung", "skin"], 600)[who],
        }
    )


def test_rows_of_a_unit_are_compared_with_rows_that_belong_to_nobody() -> None:
    schema = db.Schema.parse(TEXT).resolve({})
    real, good = stays(1), stays(2)
    moved = good.assign(nr=np.random.default_rng(3).permutation(good["nr"]))
    train = real.drop(columns="nr"), real["nr"].to_numpy()
    kept, lost = ({score.key: score for score in visit_scores(schema, made, train, None, 0)} for made in (good, moved))
    assert set(kept) == {"children", "transitions", "gaps"}
    assert kept["transitions"].name == "Successive rows of a patient, TVD"
    for key in ("transitions", "gaps"):
        assert max(kept[key].value, kept[key].real) < 0.5 * kept[key].baseline
        assert lost[key].value > 0.8 * lost[key].baseline
    assert lost["children"].value < 0.1
