"""Public rows take noise away where they fit, cost nothing where they do not, and are named by plan and card."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.guarantee import UNPROTECTED_ROWS
from doublure.methods.statistics.tables import fitting, random_effects
from doublure.methods.statistics.tables.random_effects import ComparedCounts, RandomEffects

ABOUT = {"data": "people of last year", "people": "residents of a town", "licence": "CC BY 4.0"}
SCHEMA = """
doublure: 1
kind: table
units: 1500
columns:
  age: {type: integer, bounds: [0, 90], missing: false}
  job: {type: category, values: [a, b, c, d, e, f, g, h], missing: false}
  ill: {type: boolean, missing: false}
"""
DECLARED = db.Schema.parse(SCHEMA)


def people(seed: int, rows: int = 1500) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    job = np.minimum(draw.geometric(0.4, rows) - 1, 7)
    age = np.clip(draw.normal(30 + 6 * job, 8), 0, 90).round().astype(int)
    return pd.DataFrame({"age": age, "job": np.array(list("abcdefgh"))[job], "ill": draw.random(rows) < age / 120})


def planned(public: object = "", **settings: object) -> db.Plan:
    about = {"provenance": ABOUT} if public else {}
    return db.plan(DECLARED, method="statistics", epsilon=0.3, delta=1e-5, accountant="rdp", public=public,
                   fit_steps=100, structure="tree", components=16, **about, **settings)  # fmt: skip


def fitted(folder: Path, plan: db.Plan, rows: pd.DataFrame) -> db.Synthesizer:
    ledger = db.Ledger.create(folder / f"ledger{len(list(folder.iterdir()))}", dataset="d", epsilon=9.0, delta=0.1)
    return db.fit(rows, plan, ledger=ledger, seed=0, progress=False)


def distance(real: pd.DataFrame, made: pd.DataFrame) -> float:
    """Return the total variation distance of age in decades by job."""
    tables = [pd.crosstab(frame.age // 10, frame.job, normalize=True) for frame in (real, made)]
    return float(tables[0].sub(tables[1], fill_value=0).fillna(0).abs().to_numpy().sum()) / 2


def public_file(folder: Path, rows: pd.DataFrame) -> Path:
    rows.to_csv(folder / "last_year.csv", index=False)
    return folder / "last_year.csv"


UNFIT = {
    "shuffled": lambda rows, draw: pd.DataFrame({name: draw.permutation(rows[name]) for name in rows}),
    "shifted": lambda rows, draw: rows.assign(age=(rows.age + 25).clip(0, 90)),
    "unrelated": lambda rows, draw: pd.DataFrame({name: draw.choice(rows[name].unique(), len(rows)) for name in rows}),
}


def test_rows_that_fit_take_noise_away_and_others_cost_nothing(tmp_path):
    private, draw = people(0), np.random.default_rng(5)

    def mean_distance(plan: db.Plan, number: int) -> float:
        fits = [fitted(tmp_path, plan, private) for _ in range(number)]  # one is off by .04
        return float(np.mean([distance(private, one.sample(6000, seed=1)) for one in fits]))

    alone = mean_distance(planned(), 8)
    for name, make in {"fitting": lambda rows, _: rows, **UNFIT}.items():
        beside = mean_distance(planned(public_file(tmp_path, make(people(1), draw))), 8 if name == "fitting" else 4)
        assert beside < {"fitting": 0.85 * alone, "shifted": alone + 0.16}.get(name, alone + 0.08), (
            name,
            beside,
            alone,
        )


def test_the_weight_of_public_counts_follows_from_how_far_they_are_off():
    draw = np.random.default_rng(0)
    true = 3000 * draw.dirichlet(np.full(64, 0.3))
    noisy = true + draw.normal(0, 40, 64)

    def compared(public: np.ndarray) -> ComparedCounts:
        told = float(((public - public.mean()) ** 2).sum())
        return ComparedCounts(counts=noisy, variance=1600.0, public=public, sampling=2 * (public + 0.5), told=told)

    near = draw.poisson(true).astype(float)
    [(means, variances)] = RandomEffects().combine([compared(near)])
    assert np.square(means - true).mean() < 0.2 * np.square(noisy - true).mean()
    assert 0.2 < np.square(means - true).mean() / variances.mean() < 2  # no surer than it is
    for far in (draw.permutation(true), np.roll(true, 9), np.full(64, true.mean())):
        [(means, _)] = RandomEffects().combine([compared(far)])
        assert np.square(means - noisy).mean() < 0.1 * 1600, far


@pytest.mark.parametrize("size", [1, 2, 7, 64, 100])
def test_wavelets_are_orthonormal(size):
    waves = random_effects._haar(size).toarray()
    np.testing.assert_allclose(waves @ waves.T, np.eye(size), atol=1e-12)
    np.testing.assert_allclose(np.abs(waves[0]), size**-0.5)  # the first is the sum


def test_released_tables_and_accesses_are_as_without_public_rows(tmp_path):
    with_rows, without = planned(public_file(tmp_path, people(1))), planned()
    assert with_rows.touches == without.touches
    assert with_rows.guarantee.epsilon == without.guarantee.epsilon
    syn = fitted(tmp_path, with_rows, people(0))
    noise = [table.standard_error for table in syn.tables]
    assert min(noise) > 10  # as the mechanism released them: no public count is in a table with its noise


def test_plan_and_card_name_the_rows_and_a_fit_reads_no_others(tmp_path, monkeypatch):
    path = public_file(tmp_path, people(1))
    plan = planned(path)
    assert "Public rows of last_year.csv" in plan.explain()
    assert "CC BY 4.0" in plan.explain()
    assert UNPROTECTED_ROWS in plan.guarantee.excluded
    assert UNPROTECTED_ROWS.capitalize() in plan.guarantee.sentence
    plan.save(tmp_path / "plan.json")
    again = db.Plan.load(tmp_path / "plan.json")
    assert (again.sha256, again.settings.public_rows) == (plan.sha256, plan.settings.public_rows)
    syn = fitted(tmp_path, again, people(0))
    card = db.release(syn, tmp_path / "bundle", n=200, seed=1).card
    assert plan.settings.public_rows.sha256 in card["public_sources"][0]
    assert UNPROTECTED_ROWS in card["guarantee"]["excluded"]
    assert db.verify(tmp_path / "bundle")["files"]
    path.write_text(path.read_text() + "40,a,True\n")
    ledger = db.Ledger.create(tmp_path / "other", dataset="d", epsilon=9.0, delta=0.1)
    with pytest.raises(SettingError, match="not the file of the plan"):
        db.fit(people(0), again, ledger=ledger, progress=False)
    assert ledger.spent.epsilon == 0
    # The rows of a bundle of ours come with its claim.
    beside = planned(tmp_path / "bundle")
    assert (beside.settings.public_rows.epsilon, beside.settings.public_rows.delta) == (0.3, 1e-5)
    assert "adds to this claim" in beside.explain()


def test_a_card_beside_other_rows_says_nothing_of_them(tmp_path):
    path = public_file(tmp_path, people(1))
    claim = {"epsilon": 0.1, "delta": 1e-9}
    listed = [{"path": path.name, "sha256": "0" * 64}]
    (tmp_path / "card.json").write_text(json.dumps({"files": listed, "guarantee": claim}))
    assert planned(path).settings.public_rows.epsilon is None


@pytest.mark.parametrize(("kind", "refused"), [("none", True), ("empirical", True), ("dp", False)])
def test_a_release_without_epsilon_is_no_public_file(tmp_path, kind, refused):
    """Its rows may say all of the same people, and no ε could stand beside this claim's."""
    path = public_file(tmp_path, people(1))
    listed = [{"path": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}]
    claim = {"kind": kind, "epsilon": None if refused else 2.0, "delta": None if refused else 1e-6}
    (tmp_path / "card.json").write_text(json.dumps({"files": listed, "guarantee": claim}))
    if refused:
        with pytest.raises(SettingError, match="without an ε"):
            planned(path)
    else:
        assert planned(path).settings.public_rows.epsilon == 2.0


def test_the_private_file_is_no_public_one(tmp_path):
    path = public_file(tmp_path, people(1))
    (tmp_path / "linked.csv").symlink_to(path)
    plan = planned(path)
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=9.0, delta=0.1)
    for private in (path, str(path), tmp_path / "linked.csv"):
        with pytest.raises(SettingError, match="public: is the private data itself"):
            db.fit(private, plan, ledger=ledger, progress=False)
    assert ledger.spent.epsilon == 0


def test_a_file_without_rows_is_refused_before_anything_is_charged(tmp_path):
    plan = planned(public_file(tmp_path, people(1, 0)))
    with pytest.raises(SettingError, match="has no rows"):
        fitted(tmp_path, plan, people(0))
    assert db.Ledger.open(next(tmp_path.glob("ledger*"))).spent.epsilon == 0


def test_a_forged_plan_has_no_file_read(tmp_path):
    """Reading a plan opens no source: whose plan it is decides nothing about the files of this machine."""
    plan = planned(public_file(tmp_path, people(1))).to_json()
    plan["settings"] |= {"public": "/dev/stdin", "public_rows": None, "provenance": ABOUT}
    with pytest.raises(SettingError, match="no facts"):
        db.Plan.from_json(plan)


def test_no_public_row_is_copied(tmp_path):
    marked = pd.concat([people(1), pd.DataFrame({"age": [89], "job": ["h"], "ill": [False]})], ignore_index=True)
    syn = fitted(tmp_path, planned(public_file(tmp_path, marked)), people(0))
    folder = db.release(syn, tmp_path / "bundle", n=300, seed=1, tables=True)
    syn.save(tmp_path / "run")
    files = [path for root in ("bundle", "run") for path in (tmp_path / root).rglob("*") if path.is_file()]
    rows = "\n".join(",".join(map(str, row)) for row in marked.itertuples(index=False)).split("\n")
    for path in files:
        if path.suffix in (".csv", ".json"):
            text = path.read_text(errors="ignore")
            assert "\n".join(rows[:5]) not in text, path
    assert str(tmp_path) not in json.dumps(folder.card)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"public": "none.csv", "provenance": ABOUT}, "none.csv is no file"),
        ({"public": "rows.csv"}, "provenance: is needed"),
        ({"provenance": ABOUT}, "provenance: is of no public rows"),
        ({"public": "narrow.csv", "provenance": ABOUT}, "job is not a column"),
        ({"public": "rows.csv", "provenance": {"data": "x y z"}}, "provenance"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, monkeypatch, given, said):
    monkeypatch.chdir(tmp_path)
    people(1).to_csv("rows.csv", index=False)
    people(1)[["age"]].to_csv("narrow.csv", index=False)
    with pytest.raises(SettingError, match=said) as error:
        db.plan(DECLARED, method="statistics", epsilon=1.0, delta=1e-5, accountant="rdp", **given)
    assert "\n" not in str(error.value)


def test_public_cells_that_do_not_fit_are_coerced(tmp_path):
    odd = people(1).astype(object)
    odd.loc[0, "age"], odd.loc[1, "job"] = "many", "none of them"
    syn = fitted(tmp_path, planned(public_file(tmp_path, odd)), people(0))
    assert len(syn.sample(10, seed=0)) == 10


def test_private_rows_decide_nothing_about_how_public_ones_are_read(tmp_path, monkeypatch):
    """Neighbouring private data, equal noise: the public counts of the first release are the same."""
    seen = []
    kept = fitting.NoisyTables.__init__

    def noting(self, job, settings):
        kept(self, job, settings)
        seen.append(self._public._records.copy())

    monkeypatch.setattr(fitting.NoisyTables, "__init__", noting)
    plan = planned(public_file(tmp_path, people(1)))
    for rows in (people(0), people(0).iloc[1:]):
        fitted(tmp_path, plan, rows)
    np.testing.assert_array_equal(seen[-1], seen[0])
