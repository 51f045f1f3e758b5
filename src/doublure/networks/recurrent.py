"""The recurrent generator of time series (Frigerio et al. 2019, §4: LSTM for streams, fresh noise at every step)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from doublure.networks.initial_weights import initialise
from doublure.networks.series import ChannelPlanes, SeriesHead
from doublure.networks.sizes import CLOCK


class LstmGenerator(nn.Module):
    """Noise at every step, the attributes and the time within the series through an LSTM to one number a plane.

    The noise ``(B, Z)`` is cut into ``length`` equal parts, one a step; what is left over is the series' own and the
    same at every step. The time is told as two waves around the series, so that the network need not count.

    Args:
        planes: The channels' planes, in order.
        length: Steps.
        condition_width: K; 0 for none.
        noise_width: Z, at least ``length``.
        hidden: Units of the LSTM.
        generator: Public randomness for the initial weights.
    """

    def __init__(
        self,
        planes: Sequence[ChannelPlanes],
        length: int,
        *,
        condition_width: int,
        noise_width: int,
        hidden: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.noise_width = noise_width
        self.condition_width = condition_width
        self._length = length
        self._each, self._common = divmod(noise_width, length)
        inputs = self._each + self._common + condition_width + CLOCK
        self.recurrent = nn.LSTM(inputs, hidden, batch_first=True)
        self.head = SeriesHead(planes, length, condition_width)
        self.output = nn.Linear(hidden, self.head.shape[0])
        self.register_buffer("clock", _waves(length), persistent=False)
        initialise(self, generator)
        _initialise_recurrent(self.recurrent, generator)
        self.head.start()

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return series ``(B, P, length)`` in [-1, 1] from noise ``(B, Z)`` and attributes ``(B, K)``."""
        size, steps = len(noise), self._length
        own, common = torch.split(noise, [self._each * steps, self._common], dim=1)
        same = common if condition is None else torch.cat([common, condition], dim=1)
        clock: Tensor = self.clock  # type: ignore[assignment]
        inputs = [own.reshape(size, steps, self._each), same[:, None].expand(-1, steps, -1), clock.expand(size, -1, -1)]
        states, _ = self.recurrent(torch.cat(inputs, dim=2))
        made: Tensor = self.head(self.output(states).transpose(1, 2), condition)
        return made


def _waves(length: int) -> Tensor:
    """Return ``(length, CLOCK)``: sine and cosine of once and twice around the series."""
    turns = torch.arange(length) * (2 * math.pi / length)
    return torch.stack(
        [wave(turns * times) for times in range(1, CLOCK // 2 + 1) for wave in (torch.sin, torch.cos)], 1
    )


@torch.no_grad()
def _initialise_recurrent(layer: nn.LSTM, generator: torch.Generator) -> None:
    """Draw an LSTM's weights with variance 1 / inputs; it begins by remembering: forget gates are biased to 1."""
    hidden = layer.hidden_size
    for name, parameter in layer.named_parameters():
        if parameter.dim() == 2:
            draws = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(draws / math.sqrt(parameter.shape[1]))
        else:
            parameter.zero_()
            if name.startswith("bias_ih"):
                parameter[hidden : 2 * hidden] = 1.0
