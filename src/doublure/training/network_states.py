"""Conversion of networks and optimisers to named tensors and back."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def to_tensors(modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return copies of all states on the CPU, keyed ``name.key`` and, for optimisers, ``name.number.key``."""
    tensors = {f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}
    for name, optimizer in optimizers.items():
        for number, entries in optimizer.state_dict()["state"].items():
            tensors |= {f"{name}.{number}.{key}": torch.as_tensor(value) for key, value in entries.items()}
    return {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}


def restore(
    tensors: Mapping[str, Tensor], modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]
) -> None:
    """Restore networks and optimisers from tensors.

    Raises:
        KeyError, ValueError, RuntimeError: The tensors belong to other networks.
    """
    for name, module in modules.items():
        module.load_state_dict(_under(tensors, f"{name}."))
    for name, optimizer in optimizers.items():
        entries: dict[int, dict[str, Tensor]] = {}
        for key, value in _under(tensors, f"{name}.").items():
            number, _, entry = key.partition(".")
            entries.setdefault(int(number), {})[entry] = value
        optimizer.load_state_dict({"state": entries, "param_groups": optimizer.state_dict()["param_groups"]})


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
