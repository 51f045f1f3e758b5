"""How finely a Gaussian counts images: by a forecast of error, which the plan states, and not by their size."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import doublure as db
from doublure.methods import registry
from doublure.methods.statistics.images.detail import counted_detail, error_by_forecast, in_words, waves_by_forecast
from doublure.networks.gaussian_images import GaussianImages, GaussianMoments, find_gaussian
from doublure.networks.labelled import LabelledGenerator, Labeller
from doublure.networks.sizes import ALL_WAVES, WARP_WIDTH, cosine_numbers

SIGNS = (3, 100, 100)
GREY = (1, 20, 20)


def schema(units=1_546, labels=24, shape=(100, 100, 3), **images):
    plain = {"doublure": 1, "kind": "images", "units": units, "images": {"shape": list(shape), **images}}
    return db.Schema.from_plain(plain | {"label": {"values": list(range(labels))}})


def planned(described, epsilon=3.0, method="guided", **given):
    return db.plan(described, method=method, epsilon=epsilon, delta=1e-5, accountant="rdp", **given)


# -- the forecast ------------------------------------------------------------------------------------------------------


def test_the_forecast_is_the_posterior_variance_of_what_is_counted_and_all_of_what_is_not():
    noise, counted = 0.02, counted_detail((1, 4, 4), (2, 2))
    squares = {(u, v): (1 + np.hypot(u, v)) ** -2.8 for u, v in product(range(4), range(4)) if u + v}
    assert counted == pytest.approx(sum(squares[each] for each in ((0, 1), (1, 0), (1, 1))) / sum(squares.values()))
    variance = 4 * noise**2 / 0.15
    left = variance * 0.5 / (0.5 + variance) / 0.5  # of a counted coefficient, as a share of what its label explains
    assert error_by_forecast((1, 4, 4), (2, 2), noise) == pytest.approx(counted * left + 1 - counted)


def test_without_noise_everything_is_counted_and_with_more_noise_ever_less():
    assert waves_by_forecast(SIGNS, 0.0) == ALL_WAVES
    found = [cosine_numbers(SIGNS, waves_by_forecast(SIGNS, noise)) for noise in (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)]
    assert found == sorted(found, reverse=True)
    assert found[0] == 3072
    assert found[-1] < 20


@pytest.mark.parametrize("noise", [0.003, 0.02])
def test_no_other_detail_has_a_smaller_forecast(noise):
    best = error_by_forecast(SIGNS, waves_by_forecast(SIGNS, noise), noise)
    assert best == min(error_by_forecast(SIGNS, each, noise) for each in product(range(2, 33), range(1, 33)))


def test_images_of_a_few_pixels_have_waves_too():
    for shape in ((1, 1, 1), (3, 1, 1), (1, 2, 2), (3, 4, 2)):
        assert 0 < cosine_numbers(shape, waves_by_forecast(shape, 0.1)) <= np.prod(shape)
        assert 0 <= error_by_forecast(shape, ALL_WAVES, 0.1) <= 1
    assert in_words((1, 4, 2), (3, 3)) == "3 x 2 waves"
    assert in_words((3, 40, 40), ALL_WAVES) == "32 x 32 waves of brightness and 32 x 32 of colour"


def test_through_noise_fewer_waves_come_closer_to_the_labels_mean_images():
    """What the forecast is of, measured: 1,500 images of ten labels in the noise of ε = 3 have it at some .01."""
    deviation, draw = 0.012, torch.Generator().manual_seed(0)
    down, across = torch.meshgrid(torch.linspace(0, 3, 20), torch.linspace(0, 3, 20), indexing="ij")
    means = torch.stack([0.5 * torch.sin(down * turn + label) * torch.cos(across) for label, turn in enumerate((1, 2))])
    images = (means[:, None, None] + 0.15 * torch.randn(2, 400, *GREY, generator=draw)).clamp(-1, 1)

    def distance(waves):
        features = GaussianMoments(GREY, waves)
        seen = torch.stack([features(own).mean(0) for own in images])
        seen = seen + deviation * torch.randn(seen.shape, generator=torch.Generator().manual_seed(1))
        made = GaussianImages(GREY, condition_width=2, warp=0.0, waves=waves).knowing(seen, torch.full((2,), deviation))
        own = torch.randn(800, cosine_numbers(GREY, waves) + 1 + WARP_WIDTH, generator=torch.Generator().manual_seed(2))
        drawn = made(own, torch.eye(2).repeat_interleave(400, dim=0)).reshape(2, 400, *GREY)
        return float((drawn.mean(1) - images.mean(1)).square().mean())

    chosen = waves_by_forecast(GREY, deviation)
    assert max(chosen) < 20
    assert distance(chosen) < 0.7 * distance(ALL_WAVES)


# -- plans -------------------------------------------------------------------------------------------------------------


def test_few_large_images_are_counted_coarsely_and_many_small_ones_as_they_are():
    """24 hand signs of 100 x 100 pixels came out as noise: a forest read 14 % of them, and 78 % of the real ones."""
    few, many = planned(schema()), planned(schema(50_000, 10, (32, 32, 3)), epsilon=10.0)
    assert max(few.settings.waves) < 8
    assert few.settings.latent == cosine_numbers(SIGNS, few.settings.waves) + 1
    assert many.settings.waves == ALL_WAVES
    assert few.seconds_estimate < planned(schema(), waves=ALL_WAVES).seconds_estimate
    assert planned(schema(), waves=(12, 3)).settings.waves == (12, 3)
    assert planned(schema(shape=(100, 100, 1))).settings.waves is None  # of a network


def test_a_plan_says_what_noise_hides_and_what_it_would_of_other_detail():
    def said(plan):
        return next(line for line in plan.explain().splitlines() if line.startswith("Detail: "))

    chosen, fine = planned(schema()), planned(schema(), waves=ALL_WAVES)
    own_waves = chosen.settings.waves
    own, most = in_words(SIGNS, own_waves), in_words(SIGNS, ALL_WAVES)
    assert f"counted in {own};" in said(chosen)
    assert f"of {most} it would hide 9" in said(chosen)
    assert f"counted in {most};" in said(fine)
    assert f"of {own} it would hide " in said(fine)
    assert "it would hide" not in said(planned(schema(50_000, 10, (32, 32, 3)), epsilon=10.0))
    for nearby in ((own_waves[0], own_waves[1] + 1), (own_waves[0] + 1, own_waves[1])):
        alike = replace(chosen, settings=chosen.settings.model_copy(update={"waves": nearby}))
        hidden = re.findall(r"hide (\d+)%", said(alike))
        assert len({*hidden}) == len(hidden)
    assert any(f"show what {own} show" in limit for limit in chosen.warnings)


@pytest.mark.parametrize("shape", [(100, 100, 3), (32, 32, 1)])
def test_a_plan_says_where_labels_cannot_be_read_off_its_images(shape):
    said = "Warning: labels can hardly be read off the images: "
    assert said in planned(schema(shape=shape)).explain()
    assert said in planned(schema(shape=shape), method="statistics", epsilon=1.0).explain()
    assert said not in planned(schema(60_000, 10, shape), epsilon=10.0).explain()
    assert said not in planned(schema(labels=1, shape=shape), method="statistics").explain()


def test_a_plan_of_an_earlier_version_counts_everything():
    made = planned(schema(shape=(32, 32, 3)), waves=ALL_WAVES)
    plain = json.loads(json.dumps(made.to_json()))
    del plain["settings"]["waves"]
    read = db.Plan.from_json(plain, name="plan")
    assert (read.settings.waves, read.settings.counted_waves) == (None, ALL_WAVES)
    assert read.settings.latent == made.settings.latent
    assert "waves" not in read.to_json()["settings"]


# -- what the released answers say -------------------------------------------------------------------------------------


def released(apart, deviation, shape=GREY, waves=(6, 6)):
    """Return a Gaussian of three labels whose means are so far apart, known through noise."""
    draw, features = torch.Generator().manual_seed(0), GaussianMoments(shape, waves)
    centres = apart * torch.randn(3, 1, *shape, generator=draw)
    images = (centres + 0.2 * torch.randn(3, 200, *shape, generator=draw)).clamp(-1, 1)
    seen = torch.stack([features(own).mean(0) for own in images])
    seen = seen + deviation * torch.randn(seen.shape, generator=draw)
    return GaussianImages(shape, condition_width=3, warp=0.0, waves=waves).knowing(seen, torch.full((3,), deviation))


def test_released_answers_say_how_much_of_what_sets_labels_apart_is_known():
    assert released(0.3, 1e-6).known_of_labels == pytest.approx(1, abs=1e-3)
    assert released(0.0, 1e-9).known_of_labels >= 0  # nothing sets them apart, and there is no noise
    clear, noisy = released(0.3, 0.005).known_of_labels, released(0.3, 0.05).known_of_labels
    assert 0 <= noisy < clear < 1
    assert noisy < 0.6


def test_cards_say_where_released_answers_do_not_tell_labels_apart():
    method, described = registry.method("guided"), schema(labels=3, shape=(20, 20, 1))
    settings = planned(described, model="gaussian", waves=(20, 20)).settings
    said = "labels can hardly be read off the images: by the noisy answers"
    unlike, alike = (released(*each, waves=(20, 20)) for each in ((0.3, 1e-4), (0.0, 0.05)))
    assert method.fitted_limits(described, settings, unlike) == ()
    labeller = Labeller(GREY, classes=3)
    checked = LabelledGenerator(alike, labeller, noise_width=8, tries=1)
    assert find_gaussian(checked) is alike
    (limit,) = method.fitted_limits(described, settings, checked)
    assert limit.startswith(said)
    network = planned(described, model="network").settings
    assert method.fitted_limits(described, network, labeller) == ()


def test_a_fit_and_its_card_say_that_labels_cannot_be_read(tmp_path):
    """Sixty images of nothing but noise, of two labels."""
    draw = np.random.default_rng(0)
    pictures = {"images": draw.integers(0, 256, (60, 16, 16, 3), dtype=np.uint8), "labels": np.arange(60) % 2}
    plan = planned(schema(60, 2, (16, 16, 3), pictures="scenes"), epsilon=1.0, method="statistics")
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="noise", epsilon=2.0, delta=1e-4)
    syn = db.fit(pictures, plan, ledger=ledger, out=tmp_path / "run", progress=False)
    (said,) = (note for note in syn.notes if note.startswith("labels can hardly be read off the images"))
    assert "by the noisy answers" in said
    bundle = db.release(db.load(tmp_path / "run"), tmp_path / "bundle", n=5)
    assert f"{said}." in bundle.card["limits"]
