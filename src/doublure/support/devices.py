"""The device to compute on, and the number of CPU threads."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from doublure.errors import SettingError
from doublure.support.extras import torch_for

_chosen = "cpu"


def check_device(device: str) -> None:
    """Refuse a device that is not available.

    Raises:
        MissingExtra: It is not the CPU, and torch is not installed.
        SettingError: torch does not have it here.
    """
    if device == "cpu":
        return
    with torch_for(f"device {device}"):
        import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise SettingError(
            f"torch has no {device!r} here", field="device", remedy="use cpu, or run doublure doctor"
        ) from None


def use_device(device: str) -> None:
    """Set the device for sampling, for measures of images, and for models that audits train.

    A fit takes its device as an argument.

    Args:
        device: Such as ``cpu`` or ``cuda``.

    Raises:
        MissingExtra: It is not the CPU, and torch is not installed.
        SettingError: torch does not have it here.
    """
    global _chosen
    check_device(device)
    _chosen = device


def chosen_device() -> str:
    """Return the device set by :func:`use_device`; the CPU by default."""
    return _chosen


def use_threads(threads: int) -> None:
    """Set the number of CPU threads of NumPy's products and of torch, now or once it is loaded.

    Raises:
        SettingError: It is less than one.
    """
    from threadpoolctl import threadpool_limits

    if threads < 1:
        raise SettingError("must be at least 1", field="threads", remedy="leave it out")
    threadpool_limits(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # read by torch when it is loaded later
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


@contextlib.contextmanager
def threads_of_fit(threads: int | None, *, with_torch: bool) -> Iterator[None]:
    """Set the CPU threads of a fit; by default a fit without torch computes its products with one.

    Its matrices are too small to be split: threads that wait for one another take processor time without a gain, and
    several times as long on a busy machine. The limit set here is restored; torch is left as it is.

    Args:
        threads: CPU threads, from now on, as :func:`use_threads` sets them; None for the default.
        with_torch: Whether the fit computes with torch.

    Raises:
        SettingError: Less than one.
    """
    from threadpoolctl import threadpool_limits

    if threads is not None:
        use_threads(threads)
    if threads is not None or with_torch:
        yield
        return
    import numpy as np  # only a library that is loaded can be limited

    del np
    with threadpool_limits(1, user_api="blas"):
        yield
