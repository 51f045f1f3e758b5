"""Networks and optimisers as named tensors, for the state that a run keeps, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from doublure.errors import LostRun, RunFolderError


def written(modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return copies of all states on the CPU, as ``name.key`` and ``name.number.key``."""
    tensors = {f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}
    for name, optimizer in optimizers.items():
        for number, entries in optimizer.state_dict()["state"].items():
            tensors |= {f"{name}.{number}.{key}": torch.as_tensor(value) for key, value in entries.items()}
    return {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}


def take_up(
    tensors: Mapping[str, Tensor], modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]
) -> None:
    """Bring networks and optimisers back to what was written.

    Raises:
        KeyError, ValueError, RuntimeError: The tensors are those of other networks.
    """
    for name, module in modules.items():
        module.load_state_dict(_under(tensors, f"{name}."))
    for name, optimizer in optimizers.items():
        entries: dict[int, dict[str, Tensor]] = {}
        for key, value in _under(tensors, f"{name}.").items():
            number, _, entry = key.partition(".")
            entries.setdefault(int(number), {})[entry] = value
        optimizer.load_state_dict({"state": entries, "param_groups": optimizer.state_dict()["param_groups"]})


@contextmanager
def taken_up() -> Iterator[None]:
    """Refuse a kept state that belongs to other networks than the plan's.

    Raises:
        RunFolderError: What is done inside found no place for a tensor, or none for its shape.
    """
    try:
        yield
    except (KeyError, IndexError, ValueError, RuntimeError):
        raise RunFolderError(
            "does not fit the plan's networks", field="checkpoint", remedy="fit into a new folder"
        ) from None


def lost_release(doing: str) -> LostRun:
    """Return the refusal to go on where a release was paid for and lost: it cannot be drawn again."""
    return LostRun(
        f"was cut off while {doing}, and their price covers one draw",
        field="run folder",
        remedy="fit into a new folder; what was charged stays charged",
    )


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
