"""Public generators for ``latentgan``, made from public data alone.

Nothing here touches a private record. :func:`fit` trains a generator on public data, :func:`adopt` takes weights that
were trained elsewhere, :func:`load` reads the folder that either makes.

Example:
    >>> from doublure import public
    >>> made = public.fit("letters.npz", "letters.schema.yaml", provenance="letters.provenance.yaml", out="public")
    ... # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublure.public.facts import Provenance, PublicFacts
from doublure.public.folder import PublicFolder, load

if TYPE_CHECKING:
    from doublure.public.fitting import adopt, fit

_LATER = ("fit", "adopt")  # they need torch

__all__ = ["Provenance", "PublicFacts", "PublicFolder", "adopt", "fit", "load"]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from doublure.public import fitting

        return getattr(fitting, name)
    raise AttributeError(f"module 'doublure.public' has no attribute {name!r}")
