"""Rule 13, and the fact that voids the claim of 2018: noise added to features is in no gradient but the last layer's.

With the score v·(clip(f(x)) + η) + b, neither ∂D/∂x nor the derivative with respect to any weight of f, or to b,
contains η. Two draws of noise give the same gradients bit for bit, whatever σ is; so a critic's weights, and the
generator trained by them, are as they would be without noise, the last layer apart. ``noisecritic`` therefore has no
kind but ``empirical`` (Triastcyn & Faltings 2018, Theorem 2 and its corollary, do not hold).
"""

from __future__ import annotations

import pytest
import torch

from doublure.methods.noisecritic.method import METHOD
from doublure.methods.noisecritic.settings import ImageNoisecriticSettings, NoisecriticSettings
from doublure.networks import noise_layer
from doublure.networks.conv import ConvCritic
from doublure.networks.noise_layer import NoiseLayer, NoisyCritic
from doublure.private.accounting import GaussianEvent, epsilon_of
from doublure.private.gradients import CriticLoss, RecordPairs

SIZE, SHAPE, CLASSES, FEATURES = 6, (1, 8, 8), 3, 5
LOSS = CriticLoss(kind="wgan", gradient_penalty=10.0)
LAST = "score.weight"


def critic(seed, std=1.5):
    """Return the same weights each time, with a noise of its own."""
    start, noise = torch.Generator().manual_seed(0), torch.Generator().manual_seed(seed)
    body = ConvCritic(
        SHAPE, condition_width=CLASSES, channels=(4, 6), features=FEATURES, activation_name="selu", generator=start,
        outputs=FEATURES,
    )  # fmt: skip
    layer = NoiseLayer(clip=1.0, std=std, normals=lambda rows, width: torch.randn(rows, width, generator=noise))
    return NoisyCritic(body, features=FEATURES, layer=layer, generator=start)


def records():
    source = torch.Generator().manual_seed(5)
    real, fake = (torch.rand(SIZE, *SHAPE, generator=source) * 2 - 1 for _ in range(2))
    labels = torch.eye(CLASSES)[torch.arange(SIZE) % CLASSES]
    return RecordPairs(real=real, fake=fake, condition=labels, mix=torch.rand(SIZE, generator=source))


def gradients(seed, std=1.5):
    """Return the WGAN-GP gradient of every weight, by name, and that of the generated records."""
    model, given = critic(seed, std), records()
    fake = given.fake.clone().requires_grad_()
    (on_fake,) = torch.autograd.grad(-model(fake, given.condition).sum(), fake)
    named = dict(model.named_parameters())
    found = torch.autograd.grad(LOSS.per_record(model, given).mean(), list(named.values()))
    return dict(zip(named, found, strict=True)) | {"what teaches the generator": on_fake}


def check_noise_is_in_no_gradient_but_the_last():
    one, two = gradients(1), gradients(2)
    assert len(one) > 8
    for name in one:
        assert torch.equal(one[name], two[name]) == (name != LAST), name
    assert torch.equal(one["body.embed.0.weight"], gradients(1, std=100.0)["body.embed.0.weight"])


def test_noise_is_in_no_gradient_but_the_last():
    check_noise_is_in_no_gradient_but_the_last()


NOISE = "self._std * self._normals(*features.shape).to(features.device)"
NOISY = f"self.clipped(features) + {NOISE}"
SCORED = "self.score(self.layer(features))"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (noise_layer.NoiseLayer, "forward", (NOISY, f"self.clipped(features) * {NOISE}")),
        (noise_layer.NoisyCritic, "forward", (SCORED, f"torch.tanh({SCORED})")),
        (noise_layer.NoiseLayer, "forward", (NOISE, f"0 * {NOISE}")),
    ],
    ids=["noise that multiplies", "a bend behind the noise", "no noise at all"],
)
def test_another_layer_would_be_noticed(lab, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_noise_is_in_no_gradient_but_the_last()


def test_the_method_claims_nothing_of_it():
    assert METHOD.guarantee == "empirical"
    for settings in (NoisecriticSettings(), ImageNoisecriticSettings()):
        assert not hasattr(settings, "max_grad_norm")


@pytest.mark.parametrize(("relation", "epsilon"), [("add-remove", 2.75), ("replace-one", 6.13)])
def test_one_released_score_is_a_gaussian_mechanism_and_nothing_more(relation, epsilon):
    """The figures of docs/evidence/methods.md, for σ = 1.5, C = 1, δ = 1e-5: the paper's generator has them."""
    settings = ImageNoisecriticSettings()
    score = GaussianEvent(noise_multiplier=settings.feature_noise / settings.feature_clip)
    assert epsilon_of([score], 1e-5, relation=relation) == pytest.approx(epsilon, abs=0.01)
