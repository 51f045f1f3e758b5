"""Images that a labeller has looked at: each goes to somebody who asked for what is seen in it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doublure.networks.gaussian_images import GaussianImages
from doublure.networks.labelled import LabelledGenerator, Labeller
from doublure.networks.sizes import WARP_WIDTH

CLASSES, WIDTH, TRIES = 3, 2, 4


class Plain(nn.Module):
    """An "image" that is its noise; and a "labeller" that reads scores from it."""

    def __init__(self):
        super().__init__()
        self.drawn = []

    def forward(self, noise, condition):
        self.drawn.append(len(noise))
        return noise.reshape(-1, 1, 1, WIDTH)


class Reader(nn.Module):
    def forward(self, images):
        first, second = images.reshape(-1, WIDTH).T
        return torch.stack([first, second, torch.zeros_like(first)], dim=1)


def made(tries=TRIES, margin=0.0):
    return LabelledGenerator(Plain(), Reader(), noise_width=WIDTH, tries=tries, margin=margin)


def noise(size, seed=0, tries=TRIES):
    return torch.randn(size, tries * WIDTH, generator=torch.Generator().manual_seed(seed))


def labels(size):
    return torch.eye(CLASSES)[torch.arange(size) % CLASSES]


def slowly(noise, wanted, tries=TRIES, margin=0.0):
    """Who gets which draw, written out: his own if it will do, else one with his label, else what is left."""
    draws = noise.reshape(len(noise), tries, WIDTH)
    given, best, left = {}, {}, list(range(len(noise)))
    for number in range(tries):
        scores = {row: [float(draws[row, number, 0]), float(draws[row, number, 1]), 0.0] for row in left}
        for row in left:
            scores[row][wanted[row]] += margin
        seen = {row: scores[row].index(max(scores[row])) for row in left}
        got = {row: row for row in left if seen[row] == wanted[row]}
        for drawer in [row for row in left if row not in got.values()]:
            takers = [row for row in left if row not in got and wanted[row] == seen[drawer]]
            if takers:
                got[takers[0]] = drawer
        got |= {row: row for row in left if row not in got and row not in got.values()}
        rest = [row for row in left if row not in got.values()]
        got |= dict(zip([row for row in left if row not in got], rest, strict=True))
        for row, drawer in got.items():
            others = [score for label, score in enumerate(scores[drawer]) if label != wanted[row]]
            lead = scores[drawer][wanted[row]] - max(others)
            if seen[drawer] == wanted[row]:
                given[row] = (drawer, number)
            if row not in best or lead > best[row][0]:
                best[row] = (lead, (drawer, number))
        left = [row for row in left if row not in given]
    return [given.get(row, best[row][1]) for row in range(len(noise))], set(given)


@pytest.mark.parametrize("tries", [1, 2, 4])
@pytest.mark.parametrize("size", [1, 7, 90])
def test_each_has_an_image_with_his_label_or_the_best_that_was_left_to_him(tries, size):
    own, wanted = noise(size, tries=tries), labels(size)
    images = made(tries)(own, wanted).reshape(-1, WIDTH)
    places, agreed = slowly(own, wanted.argmax(1).tolist(), tries)
    for image, (row, number) in zip(images, places, strict=True):
        assert torch.equal(image, own[row].reshape(tries, WIDTH)[number])
    found = Reader()(images).argmax(1)
    assert [row for row in range(size) if found[row] == wanted[row].argmax()] == sorted(agreed)
    if size == 90:
        assert len(agreed) > 60
        assert any(row != place for place, (row, _) in enumerate(places))  # some have what another drew
        assert tries > 1 or len(agreed) < size


@pytest.mark.parametrize("margin", [0.5, 1.5])
def test_an_image_keeps_what_it_was_drawn_for_unless_another_label_is_surer(margin):
    own, wanted = noise(90), labels(90)
    images = made(margin=margin)(own, wanted).reshape(-1, WIDTH)
    places, _ = slowly(own, wanted.argmax(1).tolist(), margin=margin)
    for image, (row, number) in zip(images, places, strict=True):
        assert torch.equal(image, own[row].reshape(TRIES, WIDTH)[number])
    kept = (images == own[:, :WIDTH]).all(dim=1)
    scores = Reader()(own[:, :WIDTH])
    behind = scores.amax(1) - scores.gather(1, wanted.argmax(1, keepdim=True)).squeeze(1)
    assert kept[behind < margin].all()
    assert not kept[behind > margin].all()
    assert (behind[kept] > 0).any()


def test_a_wide_margin_asks_the_labeller_for_nothing():
    own, wanted = noise(90), labels(90)
    assert torch.equal(made(margin=100.0)(own, wanted).reshape(-1, WIDTH), own[:, :WIDTH])


@pytest.mark.parametrize("tries", [1, 2, TRIES])
@pytest.mark.parametrize("asked", [[0, 1, 2], [0, 0, 1], [2]])
def test_no_image_is_handed_out_twice(asked, tries):
    """Not even where one label is asked for more often than it is seen."""
    wanted = torch.eye(CLASSES)[torch.tensor(asked).repeat(60 // len(asked))]
    images = made(tries)(noise(60, tries=tries), wanted).reshape(-1, WIDTH)
    assert len(torch.unique(images, dim=0)) == 60


def test_who_draws_his_label_keeps_it():
    own, wanted = noise(40), labels(40)
    images = made()(own, wanted).reshape(-1, WIDTH)
    happy = Reader()(own[:, :WIDTH]).argmax(1) == wanted.argmax(1)
    assert 5 < int(happy.sum()) < 35
    assert torch.equal(images[happy], own[happy, :WIDTH])


def test_alone_an_image_depends_on_its_own_noise():
    own = noise(20)
    for row in range(20):
        image = made()(own[[row]], labels(20)[[row]])[0].flatten()
        assert any(torch.equal(image, draw) for draw in own[row].reshape(-1, WIDTH))


def test_it_is_deterministic_and_tries_no_more_than_needed():
    one, other = made(), made()
    assert torch.equal(one(noise(30), labels(30)), other(noise(30), labels(30)))
    drawn = one.generator.drawn
    assert drawn[0] == 30
    assert drawn == sorted(drawn, reverse=True)
    assert drawn[-1] < 30
    sure = torch.tensor([[5.0, 0.0] * TRIES] * 3)
    one.generator.drawn.clear()
    one(sure, torch.eye(CLASSES)[[0, 0, 0]])
    assert one.generator.drawn == [3]


def test_none_is_asked_for():
    assert made()(noise(0), labels(0)).shape == (0, 1, 1, WIDTH)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 9)])
def test_a_labeller_is_linear_in_centred_features(shape):
    labeller = Labeller(shape, classes=CLASSES)
    images = torch.rand(4, *shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert not labeller(images).any()
    source = torch.Generator().manual_seed(1)
    for values in (labeller.centre, labeller.weights):
        values.copy_(torch.randn(values.shape, generator=source))
    scores = labeller(images)
    assert scores.shape == (4, CLASSES)
    features = labeller.features(images).double() - labeller.centre.double()
    torch.testing.assert_close(scores.double(), features @ labeller.weights.double().T, atol=1e-4, rtol=1e-4)
    assert set(labeller.state_dict()) == {"centre", "weights"}
    assert not list(labeller.parameters())
    assert labeller(images[:0]).shape == (0, CLASSES)


def test_a_labeller_of_one_label_agrees_at_once():
    generator = LabelledGenerator(Plain(), Labeller((1, 8, 8), classes=1), noise_width=64, tries=2)
    generator.generator.forward = lambda noise, condition: noise.reshape(-1, 1, 8, 8)
    own = torch.randn(3, 128, generator=torch.Generator().manual_seed(0))
    assert torch.equal(generator(own, torch.ones(3, 1)).flatten(1), own[:, :64])


def drawing(warp=0.5, **settings):
    """Return a generator whose images a labeller checks, its noise, its labels, and what it drew in training."""
    from doublure.methods.guided.images import _checked
    from doublure.methods.guided.settings import ImageGuidedSettings
    from doublure.networks.upsampling import UpsamplingGenerator

    shape, own = (1, 16, 16), ImageGuidedSettings(warp=warp, **settings)

    def network():
        return UpsamplingGenerator(
            shape, condition_width=2, noise_width=own.image_noise, warp=warp, hidden=4, channels=(4, 2),
            generator=torch.Generator().manual_seed(0),
        )  # fmt: skip

    made, labels = _checked(own, network(), Labeller(shape, classes=2)), torch.eye(2)[[0, 1, 0]]
    noise = torch.randn(3, own.noise_width, generator=torch.Generator().manual_seed(1))
    return made, noise, labels, network()(noise[:, : own.image_noise], labels)


WIDER = {"sampled_warp": 2.0, "sampled_spread": 1.5}


def as_checked(made, noise, labels):
    """Return images with the labels that they were drawn for, as widely as those that a labeller checks."""
    return made.generator(noise[:, : made._width], labels)


def test_images_that_no_labeller_checks_are_drawn_no_more_widely_than_in_training():
    """1,500 digits at ε = 1, declared drawings: 62.5 % showed their label, and 75.2 % as widely as in training."""
    made, noise, labels, as_trained = drawing(**WIDER)
    wide = as_checked(made, noise, labels)
    assert not torch.equal(wide, as_trained)
    assert torch.equal(made.drawn_once(noise, labels), as_trained)  # which a labeller is compared with
    made.asked.fill_(0)
    assert torch.equal(made(noise, labels), as_trained)
    assert (made.generator.warp, made.generator.spread) == (2.0, 1.5)  # drawing changes no generator
    assert torch.equal(as_checked(made, noise, labels), wide)


def test_a_gaussian_that_no_labeller_checks_is_drawn_no_more_widely_than_in_training():
    shape, limits = (1, 16, 16), (0.0, 1.0)
    gaussian = GaussianImages(shape, condition_width=2, warp=0.0)
    width = len(gaussian.coefficients.ring) + 1 + WARP_WIDTH
    noise, labels = torch.randn(3, width, generator=torch.Generator().manual_seed(1)), torch.eye(2)[[0, 1, 0]]
    as_trained = gaussian(noise, labels)
    gaussian.warp, gaussian.spread = 2.0, 1.5
    wide = gaussian(noise, labels)
    assert not torch.equal(wide, as_trained)
    assert torch.equal(gaussian(noise, labels, limits), as_trained)
    assert torch.equal(gaussian(noise, labels), wide)


def test_a_run_of_an_earlier_version_draws_unchecked_images_as_widely_as_it_did():
    """The same seed gave other images once the limit was that of whoever loads, and not of the run."""
    made, noise, labels, as_trained = drawing(**WIDER)
    made.asked.fill_(0)
    state = made.state_dict()
    assert state["unchecked"].tolist() == [0.5, 1.0]
    loaded, wide = drawing(**WIDER)[0], as_checked(made, noise, labels)
    loaded.load_state_dict(state)
    assert torch.equal(loaded(noise, labels), as_trained)
    del state["unchecked"]
    loaded.load_state_dict(state)
    assert torch.equal(loaded(noise, labels), wide)
    again = drawing(**WIDER)[0]
    again.load_state_dict(loaded.state_dict())
    assert torch.equal(again(noise, labels), wide)
