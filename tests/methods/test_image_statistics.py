"""``statistics`` on images: what its plan says of few images and of pictures, and how its estimates of work grow."""

from __future__ import annotations

from typing import Any

import pytest

import doublure as db
from doublure.methods import registry
from doublure.methods.statistics.images.method import drawing_work
from doublure.networks.sizes import fourier_work, paths, pixels, places, scattering_work

SHAPE, N = (3, 20, 16), 6_000


def schema(units: int = N, labels: int = 10, pictures: str | None = None, **label: Any) -> db.Schema:
    colours, height, width = SHAPE
    images = {"shape": [height, width, colours]} | ({"pictures": pictures} if pictures else {})
    plain: dict[str, Any] = {"doublure": 1, "kind": "images", "units": units, "images": images}
    return db.Schema.from_plain(plain | ({"label": {"values": list(range(labels))} | label} if labels else {}))


def planned(described: db.Schema, **given: Any) -> db.Plan:
    return db.plan(described, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", **given)


def work(units: int = N, labels: int = 10, **changes: Any) -> Any:
    described = schema(units, labels)
    own = planned(schema(), features=512, fit_steps=100, batch=32).settings.model_copy(update=changes)
    return registry.method("statistics").work(described, own), own, described


# -- what the plan says ------------------------------------------------------------------------------------------------


def test_who_says_what_pictures_are_is_not_told_what_follows_from_silence():
    said = "images.pictures is not declared"
    assert said in planned(schema()).explain()
    assert said not in planned(schema(pictures="photographs")).explain()
    assert said not in planned(schema(pictures="drawings")).explain()


@pytest.mark.parametrize(("side", "drawn"), [(32, None), (33, "16 x 16"), (512, "32 x 32"), (1024, "32 x 32")])
def test_larger_images_are_said_to_show_what_a_few_pixels_show(side, drawn):
    plain = schema().to_plain() | {"images": {"shape": [side, side, 1]}}
    said = [each for each in planned(db.Schema.from_plain(plain), model="network").warnings if "enlarged" in each]
    assert (f"of {side} x {side} pixels show what {drawn} pixels show" in said[0]) if drawn else not said


@pytest.mark.parametrize(("units", "few"), [(10_000, False), (9_999, True)])
def test_below_a_thousand_images_a_label_are_few(units, few):
    assert any("images a label are few" in warning for warning in planned(schema(units)).warnings) == few


def test_labels_that_are_few_by_their_shares_are_named_the_fewest_first_and_five_at_most():
    shares = {str(name): 0.02 + 0.001 * name for name in range(7)} | {"7": 0.2, "8": 0.3}
    shares["9"] = 1 - sum(shares.values())
    (said,) = (each for each in planned(schema(40_000, shares=shares)).warnings if "by their shares" in each)
    assert "0 some 800, 1 some 840, 2 some 880, 3 some 920, 4 some 960; expect shapes" in said
    (more,) = (each for each in planned(schema(30_000, shares=shares)).warnings if "by their shares" in each)
    assert "4 some 720 and 2 more; expect shapes" in more
    assert not any("by their shares" in each for each in planned(schema(60_000, shares=shares)).warnings)


# -- what it computes and holds ----------------------------------------------------------------------------------------


def seen_by_one(**changes: Any) -> float:
    """Return the multiplications that one image's features take, from twice as many images."""
    return (work(2 * N, **changes)[0].flops - work(N, **changes)[0].flops) / (2 * N)


def test_an_image_costs_its_wavelets_and_frequencies():
    colours = SHAPE[0]
    inputs = colours * places(SHAPE) * (paths(1) + 2)
    waves = scattering_work(SHAPE, 1)[0]
    assert seen_by_one() == waves + inputs * 512 // 2 + fourier_work(512)
    fine = seen_by_one(fine_detail=0.5)
    assert fine == waves + inputs * 256 // 2 + colours * pixels(SHAPE) * 256 // 2 + fourier_work(512)
    deep = colours * places(SHAPE) * paths(2)
    assert seen_by_one(second_order=0.5) == pytest.approx(
        waves + scattering_work(SHAPE, 2)[0] + inputs * 256 // 2 + deep * 256 // 2 + fourier_work(512)
    )


def test_a_step_draws_and_looks_forwards_and_backwards():
    longer, own, described = work(fit_steps=101)
    drawn, _ = drawing_work(described, own)
    assert longer.flops - work()[0].flops == pytest.approx(32 * (6 * drawn + 4 * seen_by_one()))
    assert (longer.steps, longer.free_steps) == (1, 101)


def test_memory_grows_with_batches_labels_and_images():
    one, own, described = work()
    _, kept = drawing_work(described, own)
    held = 6 * SHAPE[0] * places(SHAPE) * (paths(1) + 2)
    assert work(batch=33)[0].memory_bytes - one.memory_bytes == 4 * (4 * 512 + 3 * kept + held)
    assert work(labels=12)[0].memory_bytes - one.memory_bytes == 4 * 4 * 2 * 512
    bare, single = work(labels=0)[0], work(labels=1)[0]
    assert bare.memory_bytes == single.memory_bytes
    assert one.drawn_bytes == 3 * N * (SHAPE[0] * SHAPE[1] * SHAPE[2] + 4)
    assert work(2 * N)[0].memory_bytes - one.memory_bytes == one.drawn_bytes
