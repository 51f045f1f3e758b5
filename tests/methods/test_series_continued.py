"""Series that go on beyond a window: seams, the calendar, moments, and what cannot go on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from shell import type_in

import doublure as db
from doublure.networks.copula_continued import contraction, seam
from doublure.schema.series import SeriesSchema

TEXT = """
doublure: 1
kind: series
unit: {name: day, id: none}
units: 3200
series:
  {time: time, source: meter, length: 8, step: 3h, timezone: Europe/Paris, gaps: missing, stamped_from: 2024-01-01}
channels: {litres: {type: real, bounds: [0, 200], precision: 1, missing: true}}
attributes:
  weekend: {type: boolean, missing: false, from_time: weekend}
  size: {type: integer, bounds: [1, 10], missing: false}
"""


def readings() -> pd.DataFrame:
    """Return forty meters' eighty days: a slow wave over days, more at weekends, and a tenth of gaps that last."""
    draw = np.random.default_rng(0)
    moments = pd.date_range("2024-03-04", periods=80 * 8, freq="3h")
    frames = []
    for meter in range(40):
        slow = np.zeros(len(moments))
        for step in range(1, len(moments)):
            slow[step] = 0.95 * slow[step - 1] + draw.normal()
        litres = 60 + 8 * slow + np.tile([0, 5, 10, 30, 20, 10, 25, 5], 80) + 30 * (moments.day_of_week >= 5)
        gap = np.repeat(draw.random(len(moments) // 4) < 0.1, 4)
        litres = np.where(gap, np.nan, np.round(litres.clip(0, 200), 1))
        frames.append(pd.DataFrame({"meter": f"m{meter}", "time": moments, "litres": litres, "size": 1 + meter % 10}))
    return pd.concat(frames)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("continued")
    plan = db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=20.0, delta=1e-5)
    ledger = db.Ledger.create(folder / "ledger", dataset="meters", epsilon=50.0, delta=1e-2)
    db.fit(readings(), plan, ledger=ledger, out=folder / "run", seed=1)
    return folder / "run"


@pytest.fixture(scope="module")
def syn(run):
    return db.load(run)


def across(values: np.ndarray, length: int = 8) -> float:
    """Return the correlation of a window's last step with the next one's first, at the same place of all windows."""
    last, first = values[:, length - 1 : -1 : length].ravel(), values[:, length::length].ravel()
    known = ~(np.isnan(last) | np.isnan(first))
    return float(np.corrcoef(last[known], first[known])[0, 1])


def test_steps_on_both_sides_of_a_seam_go_together_as_within(syn):
    values = syn.sample(40, steps=8 * 30, seed=1).values[:, :, 0]
    within = [across(np.roll(values, -shift, axis=1)[:, :-8]) for shift in (2, 4, 6)]
    apart = syn.sample(40 * 30, seed=1).values.reshape(40, -1)
    assert across(values) > 0.7 * np.mean(within) > 0.5
    assert abs(across(apart)) < 0.25  # separate windows: what weekends have in common


def test_windows_that_follow_have_the_distribution_of_separate_ones(syn):
    going = syn.sample(60, steps=8 * 35, seed=2)
    frame = going.frame()
    alone = syn.sample(2100, seed=2).frame()
    for weekend in (False, True):
        own, other = (each.litres[each.weekend == weekend].dropna() for each in (frame, alone))
        assert abs(own.mean() - other.mean()) < 0.15 * other.std()
        assert abs(own.std() / other.std() - 1) < 0.15
    assert abs(frame.litres.isna().mean() - alone.litres.isna().mean()) < 0.02


def test_gaps_go_on_across_seams(syn):
    gone = np.isnan(syn.sample(60, steps=8 * 30, seed=3).values[:, :, 0])
    before, after = gone[:, 7:-1:8], gone[:, 8::8]
    within, now = gone[:, 2:-1:8], gone[:, 3::8]
    assert after[before].mean() > 0.6 * now[within].mean() > 0.2


def test_the_calendar_and_moments_go_on(syn):
    found = syn.sample(2, steps=100, seed=4)
    assert found.values.shape == (2, 100, 1)
    assert list(found.attributes) == ["size"]
    assert len(found.attributes) == 2
    weekend = found.by_window["weekend"].to_numpy().reshape(2, 13)
    assert weekend[0].tolist() == [day % 7 >= 5 for day in range(13)]  # the first of January 2024 is a Monday
    assert len(found.take(np.array([1])).by_window) == 13


def test_attributes_that_are_asked_for_hold_for_a_whole_series(syn):
    found = syn.sample(30, steps=20, given={"size": (4, 6)}, seed=5)
    assert found.attributes["size"].between(4, 6).all()


def test_a_seed_repeats_them_and_one_is_the_default(syn):
    one, other = (syn.sample(steps=50, seed=6) for _ in range(2))
    assert len(one) == 1
    np.testing.assert_array_equal(one.values, other.values)


def test_files_have_moments_that_go_on(run, tmp_path):
    csv, npz = tmp_path / "long.csv", tmp_path / "long.npz"
    for path in (csv, npz):
        type_in(f"doublure sample {run} --steps 50 -n 2 --seed 1 -o {path}")
    frame = pd.read_csv(csv)
    own = frame[frame.meter == 1]
    assert own.step.tolist() == list(range(50))
    assert (pd.to_datetime(own.time).diff().dropna() == pd.Timedelta("3h")).all()
    with np.load(npz) as file:
        assert file["values"].shape == (2, 50, 1)
        assert file["weekend"].shape == (2, 7)
        assert file["size"].shape == (2,)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 2.5}, "steps"),
        ({"steps": 20, "given": {"weekend": True}}, "given weekend"),
        ({"steps": 20, "given": {"size": {3: 0.5, 4: 0.5}}}, "given"),
        ({"steps": 20, "syntheses": 2}, "steps"),
    ],
)
def test_what_does_not_go_with_steps_is_refused(syn, asked, said):
    with pytest.raises(db.errors.SettingError, match=said):
        syn.sample(1, **asked)


# -- the seam's arithmetic ---------------------------------------------------------------------------------------------


def correlated(length: int, kept: float) -> np.ndarray:
    steps = np.arange(length)
    return kept ** np.abs(np.subtract.outer(steps, steps))


def test_a_chain_with_one_memory_goes_on_as_it_is():
    within = correlated(12, 0.8)
    found = seam(within[None, :, None, :], 12)[0, :, 0, :]
    wanted = 0.8 ** (12 - np.arange(12)[:, None] + np.arange(12))
    np.testing.assert_allclose(found, wanted, atol=0.01)


def test_a_seam_never_breaks_what_windows_are():
    draw = np.random.default_rng(0)
    for _ in range(5):
        factor = draw.normal(size=(24, 30))
        within = np.corrcoef(factor)
        found = seam(within.reshape(3, 8, 3, 8), 8).reshape(24, 24)
        whole = np.block([[within, found], [found.T, within]])
        assert np.linalg.eigvalsh(whole).min() > -1e-3


def test_a_season_within_a_window_decides_which_steps_are_alike():
    # Nights forget the day, but noon remembers noon: two days in a window show it, and go on so.
    step = np.arange(8)
    noon = (step % 4 == 2).astype(float)
    within = np.eye(8) * (1 - 0.9 * noon) + 0.9 * np.outer(noon, noon)
    found = seam(within[None, :, None, :], 4)[0, :, 0, :]
    assert found[6, 2] > 0.8
    assert abs(found[7, 3]) < 0.05


def test_correlations_that_cannot_be_are_brought_to_the_nearest():
    found = contraction(np.eye(2), np.full((2, 2), 0.9), np.eye(2))
    assert np.linalg.norm(found, 2) <= 1


def test_a_week_of_hours_has_days_for_a_season():
    from doublure.run.continuing import season_of

    def of(length: int, step: str) -> int:
        windows = f"{{time: t, length: {length}, step: {step}}}"
        text = f"{{doublure: 1, kind: series, series: {windows}, channels: {{x: {{type: real}}}}}}"
        return season_of(SeriesSchema.of(db.Schema.parse(text)))

    assert [of(168, "1h"), of(24, "1h"), of(30, "1h"), of(28, "1d")] == [24, 24, 30, 7]
