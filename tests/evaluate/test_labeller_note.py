"""Beside the accuracy of classifiers of synthetic images stands that of the labeller which labelled them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from doublure.data.images import Images
from doublure.evaluate.evaluation import _labeller_note
from doublure.networks.labelled import LabelledGenerator, Labeller, find_labeller, without_labeller
from doublure.schema import Schema

SCHEMA = Schema.parse(
    "doublure: 1\nkind: images\nunits: 9\nimages: {shape: [8, 8, 1]}\n"
    "label: {values: [a, b], roles: [target, condition], shares: {a: 0.5, b: 0.5}}\n"
)


class Noise(torch.nn.Module):
    def forward(self, noise, condition):
        return noise.reshape(-1, 1, 8, 8).tanh()


@pytest.fixture
def labelled():
    labeller = Labeller((1, 8, 8), classes=2)
    labeller.weights.copy_(torch.randn(labeller.weights.shape, generator=torch.Generator().manual_seed(0)))
    return torch.nn.Sequential(LabelledGenerator(Noise(), labeller, noise_width=64, tries=2))


def test_a_note_says_how_often_the_labeller_is_right(labelled):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 1), dtype=np.uint8)
    with torch.no_grad():
        seen = labelled[0].labeller(torch.from_numpy(pixels.transpose(0, 3, 1, 2)).float() / 127.5 - 1).argmax(1)
    codes = seen.numpy().copy()
    codes[:10] = 1 - codes[:10]
    images = Images(images=pixels, labels=pd.Series(pd.Categorical.from_codes(codes, categories=["a", "b"])))
    syn = SimpleNamespace(generator=labelled, schema=SCHEMA)
    (said,) = _labeller_note(syn, images, holdout=True)
    assert "is itself right for 75.0 % of real images kept aside" in said
    assert _labeller_note(SimpleNamespace(generator=Noise(), schema=SCHEMA), images, holdout=True) == []
    assert _labeller_note(SimpleNamespace(generator=None, schema=None), pd.DataFrame(), holdout=False) == []


def test_a_copy_without_its_labeller_draws_what_was_asked_for(labelled):
    alone = without_labeller(labelled)
    noise = torch.randn(6, 128, generator=torch.Generator().manual_seed(1))
    labels = torch.eye(2)[[0, 1] * 3]
    with torch.no_grad():
        assert torch.equal(alone[0](noise, labels), Noise()(noise[:, :64], labels))
        assert not torch.equal(labelled[0](noise, labels), alone[0](noise, labels))
    assert find_labeller(labelled) is labelled[0].labeller
    assert bool(labelled[0].asked)
