"""What there is to compute on, and when it has finished: what timings of several devices share."""

from __future__ import annotations

import torch


def there() -> list[str]:
    """Return the processor, and the first GPU that torch has here, if there is one."""
    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def named(device: str) -> str:
    """Return a device's name as a table shows it."""
    return torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else device


def finished(device: str) -> None:
    """Return once all that was asked of a device is done; a GPU answers before."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)
