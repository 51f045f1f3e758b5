"""The corrected price of PATE-GAN's votes, and what its Algorithm 1 would have said."""

from __future__ import annotations

import math
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))

from peers.pate_gan import Recipe, artificial_codes, moments, spent, vote_scale


def test_one_answer_has_a_closed_form_and_several_are_all_their_outcomes():
    """Two counts of one answer at ε = 0: the distance in variation of two pairs of λ-private answers."""
    for votes in (0.01, 0.3, 2.0):
        assert spent(votes, 1, 0.0) == pytest.approx(math.tanh(votes / 2), rel=1e-9)
        assert spent(votes, 1, 2 * votes) == 0.0
    up = 1 / (1 + math.exp(-0.3))
    outcomes = [(math.prod(up if each else 1 - up for each in row), sum(row)) for row in product((0, 1), repeat=6)]
    excess = sum(max(0.0, p - math.exp(0.4) * p * math.exp(-0.3 * (2 * ups - 6))) for p, ups in outcomes)
    assert spent(0.3, 3, 0.4) == pytest.approx(excess, rel=1e-9)


def test_lambda_spends_all_of_delta_and_no_more():
    for answers in (10, 3200):
        scale = vote_scale(1.0, 1e-5, answers)
        assert spent(scale, answers, 1.0) <= 1e-5 < spent(1.001 * scale, answers, 1.0)


def test_algorithm_1_charges_next_to_nothing_where_teachers_agree():
    """Which is why its sum may not be looked at: it tells whether they do."""
    agreed, split = (moments(0.05, torch.full((50,), gap, dtype=torch.float64)) for gap in (1000.0, 0.0))
    assert float(agreed[9]) < 1e-12 < float(split[9])
    assert float(split[9]) == pytest.approx(50 * 2 * 0.05**2 * 10 * 11)


def test_rows_are_codes_of_their_columns():
    codes = np.stack([np.arange(60) % 3, np.arange(60) % 2], axis=1)
    recipe = Recipe(share=10, iterations=1, teacher_rate=0.01, rate=0.001)
    made, facts = artificial_codes(codes, [3, 2], epsilon=1.0, delta=1e-5, rows=40, seed=0, recipe=recipe)
    assert made.shape == (40, 2)
    assert set(made[:, 0]) <= {0, 1, 2}
    assert set(made[:, 1]) <= {0, 1}
    assert facts["teachers"] == 6
    assert facts["lambda"] == vote_scale(1.0, 1e-5, 320)
