"""The proof that the attacks work: a ``gan`` that learned forty rows by heart is found out.

The long control, on census rows, is ``benchmarks/attacks.py``; what it found stands in ``docs/attacks.md``.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.auditing import audit

ROWS = 40
LETTERS = list("uvwxyz")
SCHEMA = f"""
doublure: 1
kind: table
units: {ROWS}
columns:
  a: {{type: real, bounds: [0, 1], missing: false}}
  b: {{type: real, bounds: [0, 1], missing: false}}
  c: {{type: category, values: {LETTERS}, missing: false}}
  d: {{type: category, values: {LETTERS}, missing: false}}
  e: {{type: category, values: {LETTERS}, missing: false}}
"""


def draw(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({**{name: rng.random(n) for name in "ab"}, **{name: rng.choice(LETTERS, n) for name in "cde"}})


@pytest.fixture(scope="module")
def overfitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("control")
    ledger = db.Ledger.create(folder / "ledger", dataset="rows", epsilon=1.0, delta=1e-4)
    plan = db.plan(
        db.Schema.parse(SCHEMA), method="gan", steps=400, lot_size=ROWS, generator_batch=64, width=64, critic_width=128,
        checkpoints=1,
    )  # fmt: skip
    db.fit(draw(ROWS, 1), plan, ledger=ledger, out=folder / "run", seed=1)
    return audit(folder / "run", ["critic", "gan-leaks", "neighbours"], draw(ROWS, 1), draw(500, 2))


def test_the_critic_knows_its_rows_by_heart(overfitted):
    critic, _, _ = overfitted.attacks
    assert critic.value > 0.9
    assert critic.interval[0] > 0.8
    assert critic.lower_bound > 1.0


def test_samples_alone_give_members_away(overfitted):
    _, samples, neighbours = overfitted.attacks
    assert samples.interval[0] > 0.5
    assert neighbours.interval[0] > 0.5


def test_nothing_is_claimed_so_nothing_is_passed(overfitted):
    assert not overfitted.alarms
    assert "No ε is claimed" in overfitted.verdict.headline
