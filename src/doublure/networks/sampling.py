"""Loading and sampling of generators, in arrays, for tables and networks alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.networks.array_generator import AnyGenerator, Array, ArrayGenerator
from doublure.networks.steering import ConditionPrior
from doublure.support.devices import chosen_device
from doublure.support.tensors import as_tensors

if TYPE_CHECKING:
    import torch
    from torch import nn


def load_state(generator: AnyGenerator, state: Mapping[str, Array]) -> None:
    """Load a generator's state.

    Raises:
        RuntimeError: The state belongs to another generator.
    """
    if isinstance(generator, ArrayGenerator):
        generator.load_state_dict(state)
    else:
        generator.load_state_dict(as_tensors(state))


def rows_of(generator: AnyGenerator, known: Array | None, size: int, width: int, *, seed: int, complete: bool) -> Array:
    """Return rows followed by their conditions ``(size, D + K)``.

    Args:
        generator: The generator.
        known: ``(size, K)`` conditions; None without conditions.
        size: Number of rows.
        width: Standard normal numbers for a row.
        seed: Seed of all draws.
        complete: Whether the generator draws open conditions.
    """
    if not isinstance(generator, ArrayGenerator):
        return _of_network(generator, known, size, width, seed=seed, complete=complete)
    source = np.random.default_rng(seed)
    if complete and isinstance(generator, ConditionPrior):
        known = generator.draw_conditions(known, source)
    rows = generator(source.standard_normal((size, width)), known)
    return rows if known is None else np.concatenate([rows, known], axis=1)


def _of_network(
    generator: nn.Module, known: Array | None, size: int, width: int, *, seed: int, complete: bool
) -> Array:
    import torch

    source = torch.Generator().manual_seed(seed)
    with torch.inference_mode():
        condition: Any = None if known is None else torch.from_numpy(known)
        if complete and isinstance(generator, ConditionPrior):
            condition = generator.draw_conditions(condition, source)
        rows = _computed(generator, torch.randn(size, width, generator=source), condition).flatten(1)
        return (rows if condition is None else torch.cat([rows, condition], dim=1)).numpy()


def _computed(generator: nn.Module, noise: torch.Tensor, condition: torch.Tensor | None) -> torch.Tensor:
    """Return a network's output on the chosen device, from noise drawn on the processor."""
    import torch

    device = chosen_device()
    if device == "cpu":
        rows: torch.Tensor = generator(noise, condition)
        return rows
    with torch.inference_mode(mode=False):  # weights moved in inference mode could not be trained afterwards
        generator.to(device)
    try:
        rows = generator(noise.to(device), None if condition is None else condition.to(device))
        return rows.cpu()
    finally:
        with torch.inference_mode(mode=False):
            generator.to("cpu")
