"""What is computed on and with: the device, and how many CPU threads."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from doublure.errors import SettingError
from doublure.support.extras import torch_for

_chosen = "cpu"


def check_device(device: str) -> None:
    """Refuse a device that is not there.

    Raises:
        MissingExtra: It is another than the processor, and torch is not installed.
        SettingError: torch does not have it here; naming the remedy.
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
    """Compute there from now on: what samples are drawn with, measures of images, and models that audits train.

    A fit has a device of its own, as what it computes with is part of how it is asked for.

    Args:
        device: Such as ``cpu`` or ``cuda``.

    Raises:
        MissingExtra: It is another than the processor, and torch is not installed.
        SettingError: torch does not have it here; naming the remedy.
    """
    global _chosen
    check_device(device)
    _chosen = device


def chosen_device() -> str:
    """Return where to compute, as :func:`use_device` was told; the processor otherwise."""
    return _chosen


def use_threads(threads: int) -> None:
    """Compute with so many CPU threads: NumPy's products, and torch's, now or once it is loaded.

    Raises:
        SettingError: It is not at least one.
    """
    from threadpoolctl import threadpool_limits

    if threads < 1:
        raise SettingError("must be at least 1", field="threads", remedy="leave it out")
    threadpool_limits(threads)
    os.environ["OMP_NUM_THREADS"] = str(threads)  # what torch begins with, where it is not loaded yet
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


@contextlib.contextmanager
def threads_of_fit(threads: int | None, *, with_torch: bool) -> Iterator[None]:
    """Fit with as many CPU threads as it was told; left open, one computes the products of a fit without torch.

    Its matrices are too small to be shared out: threads that wait for one another take processor time and bring none,
    and on a busy machine they take several times as long. What was limited here is restored; torch is left as it is.

    Args:
        threads: CPU threads, from now on, as :func:`use_threads` sets them; None: left open.
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
