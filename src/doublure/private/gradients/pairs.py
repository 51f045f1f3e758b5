"""Factor pairs of every record's gradient of the whole critic loss, through the double backward.

Let D be the critic and z = W a + b one of its layers. The loss of one record,
−D(x) + D(x̃) + λ (‖∇D(x̂)‖ − 1)², uses W five times, and each use adds an outer product to the gradient of W:

==================== =========================== ==============================
where W acts         cotangent                   multiplied with
==================== =========================== ==============================
forward at x, x̃      ∂L/∂z                       a
backward at x̂        δ, what came back to z      t, ∂L/∂(what is sent on to a)
forward at x̂         η, ∂L/∂z through σ″         â
==================== =========================== ==============================

The bias shares in the forward uses alone. η vanishes where all activations are piecewise linear. Everything on the
right is found by differentiating with respect to activations, never with respect to a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge

from doublure.private.gradients.layers import FactorPair, Layer
from doublure.private.gradients.loss import CriticLoss, RecordPairs, scored
from doublure.private.gradients.tape import LayerCall, Tape, UnknownParameterUse
from doublure.private.gradients.terms import Term

Target = Tensor | GradientEdge
_Found = dict[Layer, list[FactorPair]]


def factor_pairs(critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, records: RecordPairs) -> list[Term]:
    """Return the terms that together hold each record's gradient.

    Raises:
        UnknownParameterUse: The critic uses a parameter in a way that has no factors.
    """
    places = {id(parameter): place for place, parameter in enumerate(parameters)}
    with torch.enable_grad():
        values, plain = _forward(critic, places, loss, records)
        slopes = _Slopes(critic, places, records) if loss.gradient_penalty else None
        targets: list[Target] = [call.arrival for call in plain]
        if slopes is not None:
            values = values + loss.on_slope(slopes.gradient)
            targets += slopes.targets
        cotangents = _gradients(values, targets)
    found: _Found = {}
    for call, cotangent in zip(plain, cotangents, strict=False):
        _keep(found, call, cotangent, call.inputs, uses_bias=True)
    if slopes is not None:
        slopes.collect(found, cotangents[len(plain) :])
    _refuse_shared(found)
    return [term for layer, pairs in found.items() for term in layer.terms(pairs, len(records))]


def _forward(
    critic: nn.Module, places: Mapping[int, int], loss: CriticLoss, records: RecordPairs
) -> tuple[Tensor, list[LayerCall]]:
    """Return the losses (B,) without the penalty, and the calls that made them."""
    if records.fake is None:
        tape = Tape(places, len(records))
        with tape:
            scores = scored(critic, records.real.detach().requires_grad_(), records.condition)
        return loss.on_real(scores), tape.finish()
    # A record and its partner are neighbouring rows, so that (2B, …) is also (B, 2, …) without a copy.
    with torch.no_grad():
        both = torch.stack([records.real, records.fake], 1).flatten(0, 1)
    condition = None if records.condition is None else records.condition.repeat_interleave(2, 0)
    tape = Tape(places, len(both))
    with tape:
        scores = scored(critic, both.requires_grad_(), condition)
    real, fake = scores.view(-1, 2).unbind(1)
    return loss.on_real(real) + loss.on_fake(fake), tape.finish()


class _Slopes:
    """The critic at the mixed records, and its gradients on the way back to them, themselves differentiable.

    Attributes:
        gradient: ∂D/∂x̂, (B, D…).
        targets: What the loss is to be differentiated with respect to.
    """

    def __init__(self, critic: nn.Module, places: Mapping[int, int], records: RecordPairs) -> None:
        mixed = records.mixed().requires_grad_()
        tape = Tape(places, len(records), twice=True)
        with tape:
            scores = scored(critic, mixed, records.condition)
        self._calls = tape.finish()
        arrivals: list[Target] = [call.arrival for call in self._calls]
        inputs = [call.inputs for call in self._calls if call.inputs.requires_grad]
        gradient, *found = _gradients(scores, [mixed, *arrivals, *inputs], differentiable=True)
        self.gradient = torch.zeros_like(mixed) if gradient is None else gradient
        self._arrived = found[: len(arrivals)]
        sent = iter(found[len(arrivals) :])
        self._sent = [next(sent) if call.inputs.requires_grad else None for call in self._calls]
        self.targets = arrivals + [x for x in self._sent if x is not None and x.requires_grad]

    def collect(self, found: _Found, cotangents: Sequence[Tensor | None]) -> None:
        """Add the pairs of the calls, given the loss's derivatives with respect to ``targets``."""
        tangents = iter(cotangents[len(self._calls) :])
        for call, arrived, sent, forward in zip(self._calls, self._arrived, self._sent, cotangents, strict=False):
            tangent = next(tangents) if sent is not None and sent.requires_grad else None
            if arrived is not None and tangent is not None:
                _keep(found, call, arrived.detach(), tangent, uses_bias=False)
            _keep(found, call, forward, call.inputs, uses_bias=True)


def _gradients(values: Tensor, targets: Sequence[Target], *, differentiable: bool = False) -> Sequence[Tensor | None]:
    """Return the derivatives of the sum of the values, None where there is none."""
    # The seed requires a gradient so that what flows back has a graph even through a critic that is linear here.
    ones = torch.ones_like(values).requires_grad_(differentiable)
    # As a factor of a sum, since torch would import SymPy for a seed, which takes longer than many a fit.
    found: Sequence[Tensor | None] = torch.autograd.grad(
        (values * ones).sum(), cast(Any, targets), create_graph=differentiable, allow_unused=True
    )
    return found


def _keep(found: _Found, call: LayerCall, cotangent: Tensor | None, inputs: Tensor, *, uses_bias: bool) -> None:
    if cotangent is not None:
        found.setdefault(call.layer, []).append(FactorPair(cotangent, inputs.detach(), uses_bias))


def _refuse_shared(found: _Found) -> None:
    """Refuse a parameter that belongs to two different layers: inner products across them are not taken."""
    owned = [place for layer in found for place in (layer.weight, getattr(layer, "bias", None)) if place is not None]
    if len(owned) != len(set(owned)):
        raise UnknownParameterUse("a parameter is shared by different layers")
