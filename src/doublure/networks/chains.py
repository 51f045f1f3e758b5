"""A generator of series as codes: Markov chains over steps, given a level for each channel.

Expected tables of neighbouring steps are exact products over the chain, so that it is fitted to noisy tables without
sampling. Attributes shift the logits of each code at each step.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from doublure.networks.sizes import chain_noise

UNLIKELY = -1e4
"""The logit of a state that a step does not have."""

_BELOW_ONE = math.nextafter(1.0, 0.0)


class MarkovChain(nn.Module):
    """A Markov chain over ``steps`` steps of ``states`` states, one for each class; attributes add to its logits.

    Args:
        classes: Number of chains.
        steps: S.
        states: G, of each step.
        condition_width: K; 0 for none.

    Attributes:
        start: ``(classes, G)`` logits of the first step.
        transitions: ``(classes, S - 1, G, G)`` logits of the next step's states, given this one's.
        effects: ``(K, S, G)`` logits that an attribute's value adds.
    """

    def __init__(self, classes: int, steps: int, states: int, condition_width: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(classes, states))
        self.transitions = nn.Parameter(torch.zeros(classes, steps - 1, states, states))
        self.effects = nn.Parameter(torch.zeros(condition_width, steps, states))

    def forward(self, of: Tensor, uniform: Tensor, condition: Tensor | None) -> Tensor:
        """Return states ``(B, S)``.

        Args:
            of: ``(B,)`` each one's class.
            uniform: ``(B, S)`` in [0, 1).
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        states: list[Tensor] = []
        logits = self.start[of]
        for step in range(uniform.shape[1]):
            if step:
                logits = self.transitions[of, step - 1, states[-1]]
            if condition is not None:
                logits = logits + condition @ self.effects[:, step]
            cumulative = torch.softmax(logits.double(), dim=1).cumsum(dim=1)
            drawn = torch.searchsorted(cumulative, uniform[:, step : step + 1] * cumulative[:, -1:], right=True)
            states.append(drawn[:, 0].clamp(max=cumulative.shape[1] - 1))
        return torch.stack(states, dim=1)


class ChainGenerator(nn.Module):
    """Map of noise and attributes to codes.

    The channels' levels are a chain of their own, which makes channels dependent; given its level, each channel is a
    chain of groups of codes. Within a group a code is drawn by the codes' shares, and the quantile of a value within
    its group is correlated from one step to the next.

    Args:
        sizes: Number of codes of each channel.
        length: Steps.
        levels: States of a level.
        groups: States of a step, unordered ones included.
        condition_width: K; 0 for none.
        persistence: Correlation of a value's quantile within its group from one step to the next.

    Attributes:
        levels: The chain of the channels' levels.
        steps: A chain a channel, with a class for each level.
        shares: A channel's ``(codes,)`` shares of the codes, in order, adding up to 1.
        ends: ``(channels, groups)`` cumulative shares at each group's end, groups in order.
        noise_width: Numbers of noise for a series.
    """

    ends: Tensor

    def __init__(
        self, sizes: list[int], *, length: int, levels: int, groups: int, condition_width: int, persistence: float
    ) -> None:
        super().__init__()
        self._length = length
        self._persistence = persistence
        self.noise_width = chain_noise(len(sizes), length)
        self.levels = MarkovChain(1, len(sizes), levels, condition_width)
        self.steps = nn.ModuleList(MarkovChain(levels, length, groups, condition_width) for _ in sizes)
        self.shares = nn.ParameterList(
            nn.Parameter(torch.full((size,), 1 / size, dtype=torch.float64), requires_grad=False) for size in sizes
        )
        ends = torch.linspace(0, 1, groups + 1, dtype=torch.float64)[1:]
        self.register_buffer("ends", ends.repeat(len(sizes), 1))

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return codes ``(B, channels, length)``.

        Args:
            noise: ``(B, noise_width)`` standard normal.
            condition: ``(B, K)`` one-hot blocks, or None.
        """
        channels = len(self.shares)
        uniform = torch.special.ndtr(noise[:, : channels * (1 + self._length)].double()).clamp(max=_BELOW_ONE)
        places = noise[:, channels * (1 + self._length) :].view(len(noise), channels, self._length)
        levels = self.levels(torch.zeros(len(noise), dtype=torch.long), uniform[:, :channels], condition)
        made = []
        for channel, (chain, own) in enumerate(zip(self.steps, self.shares, strict=True)):
            first = channels + channel * self._length
            groups = chain(levels[:, channel], uniform[:, first : first + self._length], condition)
            within = torch.special.ndtr(self._persistent(places[:, channel]).double())
            ends = torch.cat([self.ends.new_zeros(1), self.ends[channel]])
            left, right = ends[groups], ends[groups + 1]
            codes = torch.searchsorted(own.cumsum(0), left + within * (right - left), right=True)
            made.append(codes.clamp(max=len(own) - 1))
        return torch.stack(made, dim=1).to(noise.dtype)

    def _persistent(self, noise: Tensor) -> Tensor:
        """Return standard normal numbers ``(B, length)``, each correlated with the one before it."""
        fresh = math.sqrt(1 - self._persistence**2)
        steps = [noise[:, 0]]
        for step in range(1, noise.shape[1]):
            steps.append(self._persistence * steps[-1] + fresh * noise[:, step])
        return torch.stack(steps, dim=1)
