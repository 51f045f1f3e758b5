"""What torch computes on and with: the device, and how many CPU threads."""

from __future__ import annotations

from doublure.errors import SettingError


def check_device(device: str) -> None:
    """Refuse a device that torch does not have here.

    Raises:
        SettingError: Naming the remedy.
    """
    if device == "cpu":
        return
    import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise SettingError(
            f"torch has no {device!r} here", field="device", remedy="use cpu, or run doublure doctor"
        ) from None


def use_threads(threads: int) -> None:
    """Let torch use so many CPU threads.

    Raises:
        SettingError: It is not at least one.
    """
    import torch

    if threads < 1:
        raise SettingError("must be at least 1", field="threads", remedy="leave it out")
    torch.set_num_threads(threads)
