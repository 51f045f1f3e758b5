"""The mixture of products: what it draws, and how a condition chooses among its components."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from doublure.networks.mixture import MixtureGenerator, MixtureRows

ALPHA = 1e-6
SIZES = [3, 2, 2, 3]  # the last two are conditions
BODY, CONDITION = 5, 5
COMPONENTS = 4


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def mixture(condition_width=CONDITION, seed=1):
    made = MixtureGenerator(SIZES, condition_width=condition_width, components=COMPONENTS)
    with torch.no_grad():
        made.logits.copy_(1.5 * torch.randn(COMPONENTS, 10, generator=source(seed)))
        made.log_weights.copy_(torch.log_softmax(torch.randn(COMPONENTS, generator=source(seed + 1)), dim=0))
    return made


def asked(first, second, rows=1):
    condition = torch.zeros(rows, CONDITION)
    condition[:, first] = condition[:, 2 + second] = 1.0
    return condition


def chosen(made, rows, condition=None, seed=2):
    """Return which component each row was made of."""
    found = made(torch.randn(rows, 1, generator=source(seed)), condition).detach()
    known = made.probabilities().detach()[:, : found.shape[1]]
    distance = torch.cdist(found, known, compute_mode="donot_use_mm_for_euclid_dist")
    assert float(distance.min(dim=1).values.max()) < 1e-6
    return distance.argmin(dim=1)


def assert_as_likely(components, shares):
    """Each as often as it should be, to one row."""
    counts = torch.bincount(components, minlength=COMPONENTS).numpy()
    expected = (shares / shares.sum()).double().numpy() * len(components)
    assert np.abs(counts - expected).max() < 1.01


def posterior(made, first, second):
    """Return what Bayes says, written out."""
    known = made.probabilities().detach()
    weights = made.log_weights.exp()
    likelihood = [known[k, BODY + first] * known[k, BODY + 2 + second] for k in range(COMPONENTS)]
    joint = torch.stack([weights[k] * likelihood[k] for k in range(COMPONENTS)])
    return joint / joint.sum()


def test_every_block_holds_probabilities():
    made = mixture()
    for part in made.probabilities().split(SIZES, dim=1):
        assert torch.allclose(part.sum(1), torch.ones(COMPONENTS), atol=1e-6)
    rows = made(torch.randn(30, 1, generator=source()), asked(0, 1, 30))
    assert rows.shape == (30, BODY)
    assert torch.allclose(rows[:, :3].sum(1), torch.ones(30), atol=1e-6)
    assert torch.allclose(rows[:, 3:].sum(1), torch.ones(30), atol=1e-6)


def test_without_condition_components_are_as_likely_as_their_weights():
    made = mixture(condition_width=0)
    assert made(torch.zeros(2, 1)).shape == (2, 10)
    assert_as_likely(chosen(made, 20_000), made.log_weights.exp())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_row_of_few_is_as_likely_as_one_alone(size):
    made = mixture(condition_width=0)
    draws = source(9)
    noise = [torch.randn(size, 1, generator=draws) for _ in range(4_000)]
    known = made.probabilities()
    found = torch.stack([made(own)[0] for own in noise])
    counts = torch.bincount(torch.cdist(found, known).argmin(dim=1), minlength=COMPONENTS).numpy()
    expected = made.log_weights.exp().double().numpy()
    assert stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue > ALPHA


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 2), (0, 1)])
def test_a_condition_chooses_by_bayes(first, second):
    made = mixture()
    found = chosen(made, 20_000, asked(first, second, 20_000))
    assert_as_likely(found, posterior(made, first, second))
    other = posterior(made, 1 - first, second)
    assert (other - posterior(made, first, second)).abs().max() > 0.02


def test_each_row_has_its_own_condition():
    made = mixture()
    draw = torch.randint(2, (30_000,), generator=source(5)), torch.randint(3, (30_000,), generator=source(6))
    condition = torch.zeros(30_000, CONDITION)
    condition[torch.arange(30_000), draw[0]] = condition[torch.arange(30_000), 2 + draw[1]] = 1.0
    noise = torch.randn(30_000, 1, generator=source(2))
    found = made(noise, condition)
    for first in range(2):
        for second in range(3):
            rows = (draw[0] == first) & (draw[1] == second)
            alone = made(noise[rows], asked(first, second, int(rows.sum())))
            assert torch.equal(found[rows], alone)  # other conditions change no row


def test_what_a_condition_makes_impossible_is_not_chosen():
    made = mixture()
    with torch.no_grad():
        made.logits[:3, BODY] = -60.0
    assert set(chosen(made, 5_000, asked(0, 1, 5_000)).tolist()) == {3}


def test_a_condition_that_no_component_knows_is_answered_still():
    made = mixture()
    with torch.no_grad():
        made.logits[:, BODY] = -500.0
    rows = made(torch.randn(100, 1, generator=source()), asked(0, 1, 100))
    assert torch.isfinite(rows).all()


def test_extreme_noise_has_a_component():
    made = mixture(condition_width=0)
    found = made(torch.tensor([[-40.0], [40.0], [math.inf], [-math.inf]]))
    assert torch.isfinite(found).all()
    assert torch.equal(made(torch.tensor([[-40.0]]))[0], made.probabilities()[0])
    assert torch.equal(made(torch.tensor([[5.0]]))[0], made.probabilities()[3])


def test_no_rows_are_no_rows():
    assert mixture()(torch.zeros(0, 1), torch.zeros(0, CONDITION)).shape == (0, BODY)
    assert mixture(condition_width=0)(torch.zeros(0, 1)).shape == (0, 10)


def test_rows_can_teach_the_probabilities():
    made = mixture()
    made(torch.randn(8, 1, generator=source()), asked(0, 1, 8)).square().sum().backward()
    assert made.logits.grad[:, :BODY].abs().sum() > 0


def test_a_new_one_knows_nothing():
    fresh = MixtureGenerator(SIZES, condition_width=CONDITION, components=COMPONENTS)
    assert set(fresh.state_dict()) == {"logits", "log_weights"}
    assert torch.allclose(fresh.probabilities()[:, :3], torch.tensor(1 / 3))
    assert fresh.log_weights.exp().sum() == pytest.approx(1.0)


# -- rows as a critic sees them ----------------------------------------------------------------------------------------


def rows_of(made, condition, size=20_000, seed=5):
    drawn = MixtureRows(made)
    noise = torch.randn(size, drawn.noise_width, generator=source(seed))
    return drawn(noise, condition)


def test_rows_are_hard_and_as_likely_as_they_should_be():
    made = mixture()
    condition = asked(0, 1, rows=20_000)
    with torch.no_grad():
        rows = rows_of(made, condition)
    assert torch.equal(rows, rows.round())
    assert torch.equal(rows[:, :3].sum(1), torch.ones(len(rows)))
    assert torch.equal(rows[:, 3:].sum(1), torch.ones(len(rows)))
    table = made.probabilities().detach().double()
    weights = made.log_weights.double().exp() * table[:, BODY] * table[:, BODY + 3]
    weights /= weights.sum()
    for place in range(BODY):
        expected = float(weights @ table[:, place])
        assert stats.binomtest(int(rows[:, place].sum()), len(rows), expected).pvalue > ALPHA
    together = float(weights @ (table[:, 0] * table[:, 3]))  # columns of one component have it in common
    found = int((rows[:, 0] * rows[:, 3]).sum())
    assert stats.binomtest(found, len(rows), together).pvalue > ALPHA


def test_a_row_depends_on_its_own_numbers_alone():
    drawn = MixtureRows(mixture())
    noise = torch.randn(9, drawn.noise_width, generator=source(3))
    condition = torch.cat([asked(0, 1, rows=5), asked(1, 2, rows=4)])
    with torch.no_grad():
        together = drawn(noise, condition)
        for row in range(9):
            assert torch.equal(drawn(noise[row : row + 1], condition[row : row + 1]), together[row : row + 1])
        assert torch.equal(drawn(noise.flip(0), condition.flip(0)), together.flip(0))


def test_their_gradient_is_that_of_the_probabilities():
    made = mixture(condition_width=0)
    direction = torch.randn(10, generator=source(8))
    drawn = MixtureRows(made)
    noise = torch.randn(50, drawn.noise_width, generator=source(9))
    (through,) = torch.autograd.grad((drawn(noise) @ direction).sum(), [made.logits])
    chances = made.probable(torch.special.ndtr(noise[:, 0].double()))
    (expected,) = torch.autograd.grad((chances @ direction).sum(), [made.logits])
    torch.testing.assert_close(through, expected)
    assert through.abs().sum() > 0


@pytest.mark.parametrize("edge", [-40.0, 40.0])
def test_the_ends_of_the_noise_fall_on_some_entry(edge):
    drawn = MixtureRows(mixture(condition_width=0))
    with torch.no_grad():
        rows = drawn(torch.full((3, drawn.noise_width), edge))
    assert torch.equal(rows.sum(1), torch.full((3,), 4.0))
