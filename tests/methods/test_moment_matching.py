"""Fitting a mixture of products to tables: it reaches exact ones, stops at the noise, and follows its seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from doublure.methods.statistics.tables.mixture_fit import NoisyMarginals, fit_mixture
from doublure.methods.statistics.tables.pair_errors import AllPairs

SIZES = [3, 2, 4, 2]
STARTS = [0, 3, 5, 9, 11]


def source(seed=0):
    return np.random.default_rng(seed)


def truth(components=3, seed=2):
    """Return the probabilities (K, W) of a mixture whose columns depend on one another."""
    logits = 1.5 * source(seed).standard_normal((components, sum(SIZES)))
    parts = np.split(logits, STARTS[1:-1], axis=1)
    return np.concatenate([special.softmax(part, axis=1) for part in parts], axis=1).astype(np.float32)


def off_diagonal():
    """Return (W, W): 1 where a pair of columns is counted."""
    column = np.repeat(np.arange(len(SIZES)), SIZES)
    return (column[:, None] != column[None]).astype(np.float32)


def moments(probabilities, deviation=1e-4, noise=0.0, seed=3):
    """Return the mixture's tables, as seen through noise."""
    wide = sum(SIZES)
    error = noise * np.triu(source(seed).standard_normal((wide, wide)))
    double = probabilities.T @ probabilities / len(probabilities) + error + error.T
    return NoisyMarginals(
        sizes=SIZES,
        single=probabilities.mean(0),
        single_precision=np.full(wide, deviation**-2, dtype=np.float32),
        pairs=AllPairs(
            double=(double * off_diagonal()).astype(np.float32), precision=off_diagonal() / np.float32(deviation**2)
        ),
    )


def fitted(wanted, **changes):
    arguments = {"components": 64, "steps": 600, "prior": 0.0, "rng": source()} | changes
    return fit_mixture(wanted, **arguments)


def distance(found, probabilities):
    """Return the largest error of a cell of a two-way table."""
    one, other = (each.T @ each / len(each) for each in (found.probabilities, probabilities))
    return float((np.abs(one - other) * off_diagonal()).max())


def independence(probabilities):
    mean = probabilities.mean(0)
    table = probabilities.T @ probabilities / len(probabilities)
    return float((np.abs(np.outer(mean, mean) - table) * off_diagonal()).max())


def test_exact_tables_are_reached():
    known = truth()
    assert independence(known) > 0.05
    found = fitted(moments(known))
    assert distance(found, known) < 0.002
    assert np.abs(found.probabilities.mean(0) - known.mean(0)).max() < 0.002


def test_several_starts_together_take_less_of_the_noise_for_a_pattern():
    known, noise, far = truth(components=5), 0.01, {1: [], 4: []}
    for seed in range(6):
        wanted = moments(known, deviation=noise, noise=noise, seed=seed)
        for starts, errors in far.items():
            parts = [fitted(wanted, components=64 // starts, rng=source(10 * seed + n)) for n in range(starts)]
            found = np.concatenate([part.probabilities for part in parts])
            table, own = (each.T @ each / len(each) for each in (found, known))
            errors.append(float(((table - own) ** 2 * off_diagonal()).mean()))
    assert sum(far[4]) < sum(far[1])


def test_the_probabilities_are_some():
    found = fitted(moments(truth()), steps=5).probabilities
    assert found.shape == (64, sum(SIZES))
    assert found.dtype == np.float32
    for part in np.split(found, STARTS[1:-1], axis=1):
        assert np.allclose(part.sum(1), 1, atol=1e-5)
        assert (part > 0).all()


def test_the_fit_ends_where_the_noise_begins():
    known, noise = truth(), 0.01
    found = fitted(moments(known, deviation=noise, noise=noise))
    assert found.steps < 200
    assert found.misfit < 0.98
    assert distance(found, known) < 0.5 * independence(known)
    exact = fitted(moments(known), steps=found.steps)
    assert exact.steps == found.steps  # without noise there is more to learn
    cut_off = fitted(moments(known, deviation=noise, noise=noise), steps=found.steps)
    assert np.array_equal(cut_off.probabilities, found.probabilities)  # the state that was measured is the one returned


def test_less_noise_is_followed_more_closely():
    known = truth()
    near, far = (fitted(moments(known, deviation=noise, noise=noise)) for noise in (0.001, 0.03))
    assert distance(near, known) < 0.3 * distance(far, known)


def test_a_pair_that_was_not_counted_says_nothing():
    known = truth()
    wanted = moments(known)
    wanted.pairs.precision[:3, 3:5] = wanted.pairs.precision[3:5, :3] = 0
    wanted.pairs.double[:3, 3:5] = wanted.pairs.double[3:5, :3] = 40.0
    found = fitted(wanted)
    table = found.probabilities.T @ found.probabilities / 64
    error = np.abs(table - moments(known).pairs.double) * (wanted.pairs.precision > 0)
    assert error.max() < 0.003


def test_one_seed_gives_one_mixture():
    wanted = moments(truth())
    one, same, other = (fitted(wanted, steps=20, rng=source(seed)).probabilities for seed in (5, 5, 6))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_prior_holds_components_together():
    wanted = moments(truth(), deviation=1e-3)
    spreads = [
        float(fitted(wanted, prior=prior, steps=200).probabilities.std(0, ddof=1).mean()) for prior in (0.0, 1e3, 1e6)
    ]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[2] < 0.1 * spreads[0]


def test_each_step_is_told_and_may_end_the_fit():
    told = []
    fitted(moments(truth()), steps=7, at=told.append)
    assert told == list(range(7))

    def stops(step):
        if step == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(moments(truth()), steps=7, at=stops)


@pytest.mark.parametrize("components", [1, 2])
def test_few_components_and_no_pairs_at_all(components):
    single = NoisyMarginals(
        sizes=[3],
        single=np.array([0.7, 0.3, 0.0], dtype=np.float32), single_precision=np.full(3, 1e6, dtype=np.float32),
        pairs=AllPairs(double=np.zeros((3, 3), dtype=np.float32), precision=np.zeros((3, 3), dtype=np.float32)),
    )  # fmt: skip
    found = fitted(single, components=components)
    assert found.steps < 600
    assert found.probabilities.mean(0) == pytest.approx([0.7, 0.3, 0.0], abs=3e-3)


def test_hopeless_tables_leave_finite_probabilities():
    """A class of no rows: shares far outside [0, 1], of next to no weight."""
    wild = moments(truth())
    wild.pairs.double[:] = 1e6 * wild.pairs.double - 3e5
    wild.pairs.precision[:] *= 1e-12
    found = fitted(wild, steps=40)
    assert np.isfinite(found.probabilities).all()
