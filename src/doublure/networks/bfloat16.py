"""Products of eight binary digits in place of twenty-four, where a processor has units for them.

A generator that learns from a release takes them, in half the time: what it reads is noisy, and was paid for. Nothing
that looks at a private record may: a bound on what a record adds to a sum must hold for the sum as it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

_UNITS = ("amx_bf16", "avx512_bf16")


def bfloat16_products(device: str) -> torch.autocast:
    """Return a context in which products are made in bfloat16 if that is faster on this machine, and as usual if not.

    Args:
        device: Where is computed. Only processors are known to gain.
    """
    return torch.autocast("cpu", torch.bfloat16, enabled=device == "cpu" and has_units())


def has_units() -> bool:
    """Return whether the processor multiplies numbers in bfloat16 by itself; no, where torch cannot say."""
    capabilities: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(bool(capabilities.get(name)) for name in _UNITS)
