"""Gradients of some units: their norms and their weighted sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from doublure.private.gradients.terms import Term, UnitMembership

# Roundings of float32: of a weighted factor, of a sum, and of the some thirty squares that are added before float64
# takes over. A gradient added up in float32 differs from the exact one by up to this share of what is added up, which
# is more than this share of the result where summands cancel.
_ROUNDING = 2.0**-20
# Below this, a weight times a factor may leave float32's range although the product with the other factor does not.
_SMALL_WEIGHT = 2.0**-60
# Of a unit whose summands are larger than their sum by more than this, a float32 sum over the lot would keep the steps
# of its summands' size: too coarse for the other units, whose part in it must not depend on the rest of the lot.
_CANCELLING = 2.0**6


def _full_products() -> bool:
    """Return whether products of float32 matrices are taken in float32."""
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # set for one backend by torch's newer settings, which the older question cannot answer
        return False


@dataclass(frozen=True)
class UnitGradients:
    """The gradients of some units' records. Private.

    Args:
        units: Indices of these units in the lot, (G,).
        terms: The gradients' terms, for B records.
        membership: The unit of each record, among G.
        parameters: The parameters that are differentiated.
    """

    units: Tensor
    terms: list[Term]
    membership: UnitMembership
    parameters: Sequence[Tensor]

    @cached_property
    def _measured(self) -> Tensor:
        """Norms, and sums of the summands' norms, (2, G) float64."""
        measured = [one for term in self.terms for one in term.measure(self.membership)]
        # Sums over the terms of squares; cancellation may leave less than nothing.
        return torch.stack(measured).view(len(self.terms), 2, -1).sum(0).clamp_(min=0).sqrt_()

    @torch.no_grad()
    def norms(self) -> Tensor:
        """Return for each unit a bound on the norm of its summed gradient, (G,) float64.

        It is the norm, taken in float64 from the very factors that :meth:`weighted_sum` uses, plus what rounding can
        add to their float32 sum: some 1e-6 of the norm, more only where a gradient is a small difference of large
        terms. NaN or infinite for a unit with any gradient that is not finite.
        """
        norms, sizes = self._measured
        return torch.add(norms, sizes, alpha=_ROUNDING)

    @torch.no_grad()
    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return Σ w_u g_u over the units.

        Args:
            weights: (G,); a unit of weight zero is left out whatever its gradient.

        Returns:
            Flat, (P,), in the order of ``critic.parameters()``.
        """
        norms, sizes = self._measured
        weights = weights.double()
        plain = self.membership.spread((weights >= _SMALL_WEIGHT) & (sizes <= _CANCELLING * norms))
        weights = self.membership.spread(weights)
        precision = self.parameters[0].dtype
        if not _full_products():
            # A product in TF32 or bfloat16 rounds more than norms() allows for.
            precision = torch.float64
        if plain.all():
            return self._weighted(self.terms, weights, precision).to(self.parameters[0].dtype)
        total = self._some(plain, weights, precision)
        # Huge gradients, whose weights are tiny, and those that cancel: only float64 holds the steps between.
        rest = (weights > 0) & ~plain
        if rest.any():
            total = total + self._some(rest, weights, torch.float64)
        return total.to(self.parameters[0].dtype)

    def _some(self, chosen: Tensor, weights: Tensor, precision: torch.dtype) -> Tensor:
        (rows,) = chosen.nonzero(as_tuple=True)
        return self._weighted([term.select(rows) for term in self.terms], weights[rows], precision)

    def _weighted(self, terms: list[Term], weights: Tensor, precision: torch.dtype) -> Tensor:
        sizes = [p.numel() for p in self.parameters]
        total = torch.zeros(sum(sizes), dtype=precision, device=weights.device)
        pieces = torch.split(total, sizes)
        weights = weights.to(precision)
        for term in terms:
            term.add_to(pieces, weights)
        return total
