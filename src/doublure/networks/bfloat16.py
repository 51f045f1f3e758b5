"""Matrix products in bfloat16, on processors with units for them.

A generator that is fitted to a release uses them, in half the time: its targets are noisy and already paid for. No
computation on private records may use them: a bound on a record's contribution must hold for the sum as computed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

_UNITS = ("amx_bf16", "avx512_bf16")


def bfloat16_products(device: str) -> torch.autocast:
    """Return a context that computes products in bfloat16 if this machine does so faster.

    Args:
        device: The device of the computation. Only processors are known to gain.
    """
    return torch.autocast("cpu", torch.bfloat16, enabled=device == "cpu" and has_units())


def has_units() -> bool:
    """Return whether the processor has bfloat16 units; False if torch cannot tell."""
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(bool(capabilities.get(name)) for name in _UNITS)
