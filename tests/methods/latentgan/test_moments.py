"""Noisy moments of classes and of their cells: how two looks are joined, and how much of a look is believed."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from doublure.access import Access
from doublure.methods.latentgan import moments
from doublure.methods.latentgan.moments import (
    CellMoments,
    ClassMoments,
    LatentMoments,
    _drawn,
    allowed_splits,
    cell_shares,
    combine_sums,
    estimate_mixture,
    factor_covariances,
    moment_vectors,
    shrink_covariances,
)
from doublure.private.accounting import GaussianEvent

WIDTH = 3


def latents(number, seed=0):
    drawn = torch.randn(number, WIDTH, generator=torch.Generator().manual_seed(seed))
    return drawn.clamp(-1, 1)


def close(found, expected):
    return torch.allclose(found, torch.as_tensor(expected, dtype=found.dtype), rtol=1e-4, atol=1e-5)


# -- sums --------------------------------------------------------------------------------------------------------------


def test_moments_come_back_from_their_sums():
    seen = latents(50)
    found = LatentMoments.of(moment_vectors(seen).sum(0, keepdim=True), 0.5)
    assert close(found.counts, [50.0])
    assert close(found.means[0], seen.mean(0))
    assert close(found.covariances[0], seen.T.cov(correction=0))
    one = LatentMoments.of(moment_vectors(seen[:1]), 0.5)
    assert float(found.noise[0]) == pytest.approx(float(one.noise[0]) / 50, rel=1e-4)


def test_what_noise_has_made_of_nobody_is_one_record():
    found = LatentMoments.of(-moment_vectors(latents(5)), 1.0)
    assert found.counts.tolist() == [1.0] * 5


@pytest.mark.parametrize(("noises", "share"), [((1.0, 1.0), 0.5), ((1.0, 2.0), 0.8), ((2.0, 1.0), 0.2)])
def test_two_looks_are_joined_by_how_precise_they_are(noises, share):
    one, other = (moment_vectors(latents(number)).sum(0, keepdim=True) for number in (40, 10))
    found = combine_sums(one, noises[0], other, noises[1])
    assert close(found.counts, [share * 40 + (1 - share) * 10])
    alone = LatentMoments.of(share * one + (1 - share) * other, 1.0)
    assert close(found.means, alone.means)
    assert close(found.covariances, alone.covariances)
    assert close(found.noise / alone.noise, [1 / math.sqrt(1 / noises[0] ** 2 + 1 / noises[1] ** 2)])


def test_a_record_counts_in_one_cell_of_its_class():
    """A cell is a corner of its class: here by the signs of the first two numbers."""
    means, directions = torch.zeros(2, WIDTH), torch.eye(WIDTH)[:, :2].expand(2, WIDTH, 2)
    by_class, by_cell = ClassMoments((2,), WIDTH), CellMoments((2,), WIDTH, means, directions)
    assert by_class.shape == (2, 1 + WIDTH + WIDTH**2)
    assert by_cell.shape == (8, 1 + WIDTH + WIDTH**2)
    seen = torch.tensor([[1.0, 1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, -1.0, 0.0]])
    condition = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    where, numbers = by_cell(seen, condition)
    assert where.argmax(1).tolist() == [3, 2, 5, 4]
    assert where.sum(1).tolist() == [1.0] * 4
    assert by_class(seen, condition)[0].argmax(1).tolist() == [0, 0, 1, 1]
    assert close(numbers, moment_vectors(seen))


# -- what is believed --------------------------------------------------------------------------------------------------


def test_classes_are_cut_as_often_as_a_cells_mean_stays_clear_of_the_noise():
    settings = SimpleNamespace(splits=4, latent=16)
    cut = [allowed_splits(settings, records, 1.0) for records in (100, 1e3, 2e3, 4e3, 8e3, 1e9)]
    assert cut == [0, 1, 2, 3, 4, 4]
    assert allowed_splits(settings, 8e3, 2.0) == allowed_splits(settings, 4e3, 1.0)
    assert allowed_splits(SimpleNamespace(splits=4, latent=64), 8e3, 1.0) == 3


def test_a_look_that_just_can_be_believed_is(monkeypatch):
    monkeypatch.setattr(moments, "_LENGTH", 1.0)
    monkeypatch.setattr(moments, "_BELIEVED", 0.25)
    settings = SimpleNamespace(splits=2, latent=4)
    assert allowed_splits(settings, 64, 2.0) == 2
    assert allowed_splits(settings, 64, 2.0 + 2**-40) == 1


def test_differences_are_shortened_by_what_noise_lengthened_them():
    """Of d = 4 and noise 1: eigenvalues within √8 are noise, and λ beyond was √(λ² − 8)."""
    turn = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0)))[0]
    towards = torch.eye(4)[None] * 7
    apart = turn @ torch.diag(torch.tensor([3.0, -3.0, 2.0, 10.0])) @ turn.T
    found = _drawn(towards + apart, towards, torch.tensor([1.0]))
    expected = turn @ torch.diag(torch.tensor([1.0, -1.0, 0.0, math.sqrt(92)])) @ turn.T
    assert close(found, towards + expected)
    assert close(_drawn(towards + apart, towards, torch.tensor([0.0])), towards + apart)


def test_cells_that_noise_could_tell_apart_have_the_covariance_of_their_class():
    counts = torch.tensor([300.0, 100.0, 200.0, 200.0])
    sizes = torch.tensor([101.0, 99.0, 1.0, 1.0])
    cells = LatentMoments(counts=counts, means=torch.zeros(4, 2), covariances=sizes[:, None, None] * torch.eye(2),
                    noise=torch.ones(4))  # fmt: skip
    found = shrink_covariances(cells, 2, torch.tensor([0, 0, 1, 1]))
    own, common = (300 * 101 + 100 * 99) / 400, float((counts * sizes).sum() / counts.sum())
    noise = 0.75**2 + 0.25**2
    expected = common + math.sqrt((own - common) ** 2 - 4 * noise)
    assert close(found[:2], (expected * torch.eye(2)).expand(2, 2, 2))
    assert close(found[2], found[3])


def test_factors_make_covariances_and_weights_are_shares_within_a_class():
    covariance = torch.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]])
    factors = factor_covariances(covariance)
    made = factors @ factors.transpose(1, 2)
    assert close(made[0], covariance[0])
    assert torch.linalg.eigvalsh(made[1]).tolist() == pytest.approx([1e-3, 3.0], rel=1e-3)  # it had -1
    assert cell_shares(torch.tensor([3.0, 1.0, 2.0, 2.0]), 2).tolist() == [[0.75, 0.25], [0.5, 0.5]]


# -- the mixture -------------------------------------------------------------------------------------------------------


class Shapes:
    """Of latents in two classes."""

    condition_sizes = {"label": 2}  # noqa: RUF012


class Sums:
    """The releases of some latents, without noise, though it is said that there is some."""

    def __init__(self, seen, labels, deviations):
        self.accesses = [Access(purpose=f"look {n}", event=GaussianEvent(noise_multiplier=1.0 + n))
                         for n in range(len(deviations))]  # fmt: skip
        self.deviations, self.releases, self.asked = deviations, len(deviations), []
        self.taken = 0
        self._seen, self._condition = seen, torch.eye(2)[labels]

    def release(self, number, *, shape):
        """Return the sums."""
        where, numbers = number(self._seen, self._condition)
        self.asked.append(number.name)
        assert (where.shape[1], numbers.shape[1]) == shape
        self.taken += 1
        return where.T @ numbers


@pytest.fixture
def mixed(monkeypatch):
    """Return the mixture of two heaps in one class, and of one in the other, and what was asked."""
    monkeypatch.setattr(moments, "LatentEncoder", Shapes)
    seen = 0.1 * latents(600)
    seen[:200, 0] += 1.0
    seen[200:400, 0] -= 1.0
    labels = torch.tensor([0] * 400 + [1] * 200)

    def made(splits, *deviations):
        sums = Sums(seen, labels, deviations)
        job = SimpleNamespace(
            encoder=Shapes(), device="cpu", units=600, agree=lambda tensors: None, accesses=tuple(sums.accesses),
            check_stop=lambda: None, progress=SimpleNamespace(stage=lambda *told: None, at=lambda place: None),
            mechanism=SimpleNamespace(refuse_lost=lambda *accesses: None),
        )  # fmt: skip
        return estimate_mixture(job, SimpleNamespace(splits=splits, latent=WIDTH), sums), sums.asked

    return made, [seen[:200].mean(0), seen[200:400].mean(0), seen[400:].mean(0)], seen[:400].mean(0)


def test_without_a_cut_each_class_is_one_gaussian_of_one_look(mixed):
    made, heaps, whole = mixed
    mixture, asked = made(0, 1e-3)
    assert asked == ["moments by class"]
    assert mixture.weights.tolist() == [[1.0], [1.0]]
    assert close(mixture.means, torch.stack([whole, heaps[2]]))


def test_cut_once_the_heaps_of_a_class_are_told_apart(mixed):
    made, heaps, _ = mixed
    mixture, asked = made(1, 1e-3, 1e-3)
    assert asked == ["moments by class", "moments by cell"]
    assert close(mixture.weights[0], [0.5, 0.5])
    found = mixture.means[:2]
    assert close(found[found[:, 0].argsort()], torch.stack([heaps[1], heaps[0]]))


def test_a_cut_that_noise_forbids_leaves_components_alike(mixed):
    made, heaps, whole = mixed
    mixture, asked = made(2, 1e6, 1e6)
    assert asked == ["moments by class", "moments by cell"]
    assert mixture.weights.tolist() == [[0.25] * 4] * 2
    assert close(mixture.means, torch.stack([whole] * 4 + [heaps[2]] * 4))
