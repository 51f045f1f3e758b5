"""PATE-GAN, written from its paper: Jordon, Yoon and van der Schaar, ICLR 2019, Algorithm 1.

Teachers learn real from generated records, each from its own share of the data and without noise. A student sees
generated records alone, and for each the teachers' vote with Laplace noise 1/λ on both counts; the generator learns
from the student. Five updates of the teachers and five of the student an iteration, 64 records each.

What is corrected is the accounting, so that it is compared at the same guarantee. Algorithm 1 adds up moments that
follow from the private votes, and stops when they reach ε: neither may be looked at without paying (Papernot et al.
2018, §3, smooth their like before it is published). Here λ and the number of iterations are fixed beforehand. One
record more or less changes one teacher's vote, hence both counts by 1; an answer is two λ-private ones, and Q answers
compose as 2 Q of them at best can (Kairouz, Oh and Viswanath 2015, Theorem 3.3). What Algorithm 1 would have claimed
for the same votes is told beside. The authors' code scales by the data's own least and greatest values; here bounds are
public. Noise is drawn from a seeded generator: good for a measurement, and not for a release.

What the paper leaves open stands in :class:`Recipe`, and was chosen on rows kept aside, for nothing. Its networks have
hidden layers of d, d/2 and d numbers, its teachers one; here teachers are linear, because thousands of them are
needed: the noise that the correct price asks for is of the size of hundreds of votes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor, nn
from torch.nn import functional

UPDATES, BATCH = 5, 64

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Labels = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What the paper leaves to a search.

    Attributes:
        share: Records a teacher.
        iterations: Of Algorithm 1's outer loop; together with ε they decide λ.
        teacher_rate: Adam's, of the teachers.
        rate: Adam's, of student and generator.
        start: Where numbers start before the sigmoid: below 0 where it is public that most of them are small.
    """

    share: int
    iterations: int
    teacher_rate: float
    rate: float
    start: float = 0.0


ROWS = Recipe(share=10, iterations=100, teacher_rate=1e-3, rate=1e-3)
IMAGES = {"mnist": Recipe(share=50, iterations=100, teacher_rate=1e-3, rate=2e-4, start=-2.0)}

# -- the price -------------------------------------------------------------------------------------------------------


def spent(noise: float, answers: int, epsilon: float) -> float:
    """Return the least δ at which so many answers, each of two counts with Gaussian noise, are (ε, δ)-private.

    One record changes one teacher's vote: both counts by 1, so that an answer is √2 / σ-GDP and Q are √(2 Q) / σ-GDP
    (Dong, Roth and Su 2022, Corollaries 1 and 3.3).

    Args:
        noise: σ of each count.
        answers: Q.
        epsilon: ε.
    """
    mu = math.sqrt(2 * answers) / noise
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu)))


def vote_noise(epsilon: float, delta: float, answers: int) -> float:
    """Return the least σ at which Q answers are (ε, δ)-private; rounded up."""
    low, high = 1e-3, 1e7
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle, answers, epsilon) <= delta else (middle, high)
    return high


# -- the networks ----------------------------------------------------------------------------------------------------


class Generator(nn.Module):
    """Noise, and a label's one-hot row where there is one, to a record: numbers in [0, 1], or one-hot categories.

    Categories are drawn, and differentiated as their shares are (Jang et al. 2017, straight through): the paper says
    nothing of them, and of shares every teacher knows at once that no real record has any.

    Args:
        width: d.
        sizes: How many values each category has; none where a record is numbers.
        labels: How many labels are given.
    """

    def __init__(self, width: int, sizes: Sequence[int], labels: int) -> None:
        super().__init__()
        self.noise = max(2, width // 4)
        self.sizes = list(sizes)
        self.body = hidden_layers(self.noise + labels, width, width)

    def forward(self, noise: Tensor, labels: Tensor, source: torch.Generator) -> Tensor:
        """Return records ``(B, d)``."""
        out: Tensor = self.body(torch.cat([noise, labels], 1))
        if not self.sizes:
            return out.sigmoid()
        picked = []
        for block in out.split(self.sizes, 1):
            shares = block.softmax(1)
            chosen = torch.multinomial(shares.detach(), 1, generator=source)
            picked.append(torch.zeros_like(shares).scatter(1, chosen, 1.0) + shares - shares.detach())
        return torch.cat(picked, 1)


def hidden_layers(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Return the paper's network: hidden layers of d, d/2 and d numbers."""
    half = max(1, width // 2)
    layers = nn.Sequential(
        nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, half), nn.ReLU(), nn.Linear(half, width), nn.ReLU(),
        nn.Linear(width, outputs),
    )  # fmt: skip
    for layer in layers[::2]:  # as the authors' code starts: torch's own weights let noise fade from layer to layer
        nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(layer.bias)
    return layers


class Teachers:
    """Linear classifiers of real against generated, one a share of the records.

    Args:
        records: ``(N, d)``; those that fill no whole share are left out.
        recipe: See there.
        source: Which record belongs to which teacher: drawn without a look at it.
    """

    def __init__(self, records: Tensor, recipe: Recipe, source: torch.Generator) -> None:
        self.count = len(records) // recipe.share
        order = torch.randperm(len(records), generator=source)[: self.count * recipe.share]
        self._shares = records[order].view(self.count, recipe.share, -1)
        self._weights = torch.zeros(self.count, records.shape[1], requires_grad=True)
        self._biases = torch.zeros(self.count, requires_grad=True)
        self._optimizer = torch.optim.Adam([self._weights, self._biases], recipe.teacher_rate)
        self._source = source

    def learn(self, generated: Tensor) -> None:
        """Update each teacher with up to 64 of its own records, and these ``(64, d)`` generated ones."""
        own = self._shares
        if own.shape[1] > BATCH:
            own = own[:, torch.randperm(own.shape[1], generator=self._source)[:BATCH]]
        real = torch.bmm(own, self._weights.unsqueeze(2)).squeeze(2) + self._biases[:, None]
        made = generated @ self._weights.T + self._biases
        # Means, so that the two halves weigh the same whatever the share; summed over teachers, who do not meet.
        loss = functional.softplus(-real).mean(1).sum() + functional.softplus(made).mean(0).sum()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()

    @torch.no_grad()
    def votes(self, generated: Tensor) -> Tensor:
        """Return how many call each record real, ``(B,)``. Private."""
        return (generated @ self._weights.T + self._biases > 0).sum(1).double()


# -- Algorithm 1 -----------------------------------------------------------------------------------------------------


def taught(
    records: Tensor, sizes: Sequence[int], labels: int, *, epsilon: float, delta: float, recipe: Recipe, seed: int
) -> tuple[Generator, dict[str, float]]:
    """Return a generator that learned from ``(N, d + labels)`` records, and λ, teachers and Algorithm 1's own ε.

    Args:
        records: Each with its label's one-hot row at the end, where there are labels.
        sizes: As :class:`Generator` has them.
        labels: How many there are.
        epsilon: ε under add/remove of one record.
        delta: δ.
        recipe: See there.
        seed: Of everything.
    """
    source = torch.Generator().manual_seed(seed)
    answers = recipe.iterations * UPDATES * BATCH
    sigma = vote_noise(epsilon, delta, answers)
    teachers = Teachers(records, recipe, source)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        generator = Generator(records.shape[1] - labels, sizes, labels)
        nn.init.constant_(generator.body[-1].bias, recipe.start)
        student = hidden_layers(records.shape[1], records.shape[1] - labels, 1)
    own = [torch.optim.Adam(part.parameters(), recipe.rate, betas=(0.5, 0.999)) for part in (generator, student)]
    noise = np.random.default_rng(seed)
    for _ in range(recipe.iterations):
        for _ in range(UPDATES):
            with torch.no_grad():
                seen = drawn(generator, BATCH, labels, source)
            teachers.learn(seen)
        for _ in range(UPDATES):
            with torch.no_grad():
                seen = drawn(generator, BATCH, labels, source)
            real = teachers.votes(seen)
            made = teachers.count - real
            blur = torch.from_numpy(noise.normal(scale=sigma, size=(2, BATCH)))
            verdict = (real + blur[0] > made + blur[1]).float()
            loss = functional.binary_cross_entropy_with_logits(student(seen).squeeze(1), verdict)
            own[1].zero_grad()
            loss.backward()
            own[1].step()
        fooled = student(drawn(generator, BATCH, labels, source)).squeeze(1)
        loss = functional.logsigmoid(-fooled).mean()  # log(1 − S(G(z)))
        own[0].zero_grad()
        loss.backward()
        own[0].step()
    return generator.eval(), {"sigma": sigma, "teachers": teachers.count, "iterations": recipe.iterations}


def drawn(generator: Generator, size: int, labels: int, source: torch.Generator) -> Tensor:
    """Return generated records ``(B, d + labels)``, their labels drawn evenly."""
    noise = torch.rand(size, generator.noise, generator=source) * 2 - 1
    asked = one_hot(torch.randint(max(1, labels), (size,), generator=source), labels)
    return torch.cat([generator(noise, asked, source), asked], 1)


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Return labels ``(B,)`` as rows ``(B, K)``; of no classes, no numbers."""
    return functional.one_hot(labels, classes).float() if classes else torch.zeros(len(labels), 0)


# -- pictures and tables ---------------------------------------------------------------------------------------------


def artificial(
    images: Bytes, labels: Labels, *, data: str, epsilon: float, delta: float, size: int, seed: int
) -> tuple[Bytes, Labels, dict[str, float]]:
    """Return ``size`` synthetic images of the same shape, their labels in turn, and what :func:`taught` tells."""
    recipe, classes = IMAGES[data], int(labels.max()) + 1
    rows = torch.from_numpy(images.reshape(len(images), -1)).float() / 255
    records = torch.cat([rows, one_hot(torch.from_numpy(labels), classes)], 1)
    generator, facts = taught(records, [], classes, epsilon=epsilon, delta=delta, recipe=recipe, seed=seed)
    source = torch.Generator().manual_seed(seed + 1)
    asked, made = torch.arange(size) % classes, []
    with torch.no_grad():
        for part in asked.split(1000):
            noise = torch.rand(len(part), generator.noise, generator=source) * 2 - 1
            made.append(generator(noise, one_hot(part, classes), source))
    grey = (torch.cat(made) * 255).round().to(torch.uint8).numpy().reshape(-1, *images.shape[1:])
    return grey, asked.numpy().astype(np.int64), facts


def artificial_codes(
    codes: Labels, sizes: Sequence[int], *, epsilon: float, delta: float, rows: int, seed: int, recipe: Recipe
) -> tuple[Labels, dict[str, float]]:
    """Return synthetic rows of codes ``(rows, columns)``, and what :func:`taught` tells."""
    told = torch.from_numpy(codes)
    records = torch.cat([one_hot(told[:, at], size) for at, size in enumerate(sizes)], 1)
    generator, facts = taught(records, sizes, 0, epsilon=epsilon, delta=delta, recipe=recipe, seed=seed)
    source = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        made = drawn(generator, rows, 0, source)
    picked = [block.argmax(1) for block in made.split(list(sizes), 1)]
    return torch.stack(picked, 1).numpy().astype(np.int64), facts
