"""Every method with an ε keeps it on four records and five, as far as a short audit sees; without noise it is caught.

The long audits are ``benchmarks/attacks.py run --only worst-case``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tiers import exhaustive

from doublure import public
from doublure.auditing import audit_method
from doublure.auditing import worst_case as methods
from doublure.auditing.worst_case import NEIGHBOURING_SETS
from doublure.data.records import taken
from doublure.data.relational import open_related
from doublure.errors import SettingError
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.private import whole_noise
from doublure.private.noise import ScaledNoise

QUICK = {"components": 4, "fit_steps": 20}
GAN = {
    "steps": 2,
    "lot_size": 4,
    "width": 8,
    "critic_width": 8,
    "noise_width": 4,
    "generator_batch": 8,
    "checkpoints": 1,
}
CRITIC = {"critic_share": 0.3, "critic_steps": 2, "critic_lot": 4, "critic_width": 8}
PICTURES = {"features": 32, "batch": 10, "channels": [4], "hidden": 4, "fit_steps": 4}
LATENT = {"steps": 2, "lot_size": 4, "width": 8, "critic_width": 8, "generator_batch": 8, "checkpoints": 1,
          "inversion_steps": 1, "teacher": "critic"}  # fmt: skip
SETTINGS = {
    "statistics": QUICK,
    "guided": QUICK | CRITIC,
    "dpgan": GAN,
    "latentgan": LATENT,
    "guided images": PICTURES | {"labeller_steps": 2, "view_images": 100, "view_width": 10, "tries": 2},
    "dpgan series": {"steps": 2, "lot_size": 4, "generator_batch": 4, "checkpoints": 1, "critic_channels": [4],
                     "channels": [4, 3], "features": 4, "hidden": 4, "lstm_units": 4, "critic_width": 4},
}  # fmt: skip


@pytest.fixture(scope="module")
def public_generator(tmp_path_factory):
    """Return the folder of a generator of the worst case's rows, trained on rows that are nobody's."""
    folder = tmp_path_factory.mktemp("worst") / "public"
    provenance = {"data": "coins thrown by a program", "people": "nobody at all", "licence": "CC0"}
    rows = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 3)).astype(bool), columns=list("abc"))
    public.fit(
        rows, NEIGHBOURING_SETS["table"].schema, provenance=provenance, out=folder, seed=1, objective="autoencoder",
        noise_width=3, steps=20, width=8, critic_width=8,
    )  # fmt: skip
    return str(folder)


LONGER = frozenset({"guided", "latentgan", "dpgan series"})
"""Made of what the others are made of: rule 2 of docs/evidence/pitfalls.md holds for each of them by itself."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=exhaustive) if name in LONGER else name for name in sorted(SETTINGS)]
)
def test_a_method_keeps_its_claim(name, public_generator):
    method, _, kind = name.partition(" ")
    own = SETTINGS[name] | ({"public": public_generator} if method == "latentgan" else {})
    report = audit_method(method, kind=kind or "table", epsilon=1.0, delta=1e-5, runs=20, **own)
    (found,) = report.attacks
    assert found.claim.epsilon == pytest.approx(1.0, abs=0.02)
    assert not found.alarm, found.sentence


@pytest.mark.parametrize("kind", NEIGHBOURING_SETS)
def test_a_method_that_hands_out_its_records_is_caught(kind, monkeypatch):
    class Hands:
        def __init__(self, content):
            schema = NEIGHBOURING_SETS[kind].schema.resolve({})
            self.content = open_related(content).load(schema).content if kind == "relational" else content

        def sample(self, n, seed):
            return taken(self.content, np.random.default_rng(seed).integers(0, len(self.content), n))

    monkeypatch.setattr(methods, "make_refit", lambda *_: lambda content, seed: Hands(content))
    method, changes = ("statistics", {}) if kind == "relational" else ("dpgan", {"steps": 2})
    report = audit_method(method, kind=kind, epsilon=1.0, delta=1e-5, runs=40, **changes)
    assert report.alarms
    sets = NEIGHBOURING_SETS[kind]
    cells = [sets.cells(Hands(sets.side(fifth)).content).tolist() for fifth in (False, True)]
    assert cells == [[0] * 4, [0] * 4 + [7]]


def test_neighbouring_sets_differ_in_the_fifth_record_alone(monkeypatch):
    """Seeds are public: were they other ones on the other side, they would tell the sides apart."""
    asked = []

    class Nothing:
        def __init__(self, content):
            self.content = content

        def sample(self, n, seed):
            asked.append((len(self.content), n, seed))
            return taken(self.content, np.zeros(n, dtype=np.int64))

    monkeypatch.setattr(
        methods, "make_refit", lambda *_: lambda content, seed: asked.append((len(content), seed)) or Nothing(content)
    )
    audit_method("dpgan", epsilon=1.0, delta=1e-5, runs=20, steps=2, seed=5)
    four, five = ([entry[1:] for entry in asked if entry[0] == size] for size in (4, 5))
    assert four == five
    assert len(set(four)) == 40


def test_an_unknown_kind_is_refused():
    with pytest.raises(SettingError, match="kind"):
        audit_method("dpgan", kind="sounds")


def test_a_method_without_its_noise_is_caught(monkeypatch):
    """Counts are exact, and taken for exact: a posterior that expects noise falls back to its prior of five records."""
    released = NoisyTables._released
    monkeypatch.setattr(
        NoisyTables, "_released", lambda *asked: [replace(noisy, variance=1e-6) for noisy in released(*asked)]
    )
    monkeypatch.setattr(whole_noise, "gaussian", lambda counts, *, scale: ScaledNoise(np.asarray(counts), scale))
    report = audit_method("statistics", epsilon=0.5, delta=1e-5, runs=60, **QUICK)
    assert report.alarms
    assert report.lower_bound > 1.0
    assert "Alarm" in report.verdict.headline
