"""Choose the fastest gradient engine that agrees with the slow reference.

The comparison is made before the first lot, on made-up records, so that neither the choice nor its failure says
anything about a private record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doublure.private.gradients.loss import CriticLoss, RecordPairs
from doublure.private.gradients.pairs import factor_pairs
from doublure.private.gradients.reference import looped, per_record_reference, vectorised
from doublure.private.gradients.tape import UnknownParameterUse
from doublure.private.gradients.terms import Term, UnitMembership
from doublure.private.gradients.units import UnitGradients

# How closely the fast gradients must agree with the reference: float32 against float64.
_AGREEMENT = 1e-4

Compute = Callable[[nn.Module, Sequence[Tensor], CriticLoss, RecordPairs], list[Term]]


@dataclass(frozen=True)
class GradientEngine:
    """One way of computing per-record gradients.

    Args:
        name: The engine's name.
        compute: Maps the critic, its parameters, the loss and records to the gradients' terms.
        numbers: Numbers kept per record.
    """

    name: str
    compute: Compute
    numbers: int


def choose(critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, like: RecordPairs) -> GradientEngine:
    """Return the fastest engine that agrees with a loop over made-up records.

    Args:
        critic: The critic.
        parameters: Its parameters.
        loss: The loss.
        like: Records, of which only shapes and types are read.
    """
    engines: tuple[tuple[str, Compute], ...] = (("pairs", factor_pairs), ("vmap", vectorised))
    with _evaluating(critic), full_convolutions():
        for name, compute in engines:
            # Two sizes: a tensor whose first axis only happens to be as long as the lot fails one of them.
            kept = [_agreed(compute, critic, parameters, loss, _made_up(like, size)) for size in (2, 3)]
            if all(kept):
                return GradientEngine(name, compute, max(kept))
    return GradientEngine("loop", looped, sum(p.numel() for p in parameters))


@contextmanager
def full_convolutions() -> Iterator[None]:
    """Take convolutions in float32 as a whole, and put the setting back.

    On CUDA torch takes them in TF32 unless it is told: with 10 binary digits no fast engine agrees with the reference,
    and a norm that is clipped to C would be out by a thousandth.
    """
    cudnn = torch.backends.cudnn
    newer = getattr(cudnn, "conv", None)  # of torch 2.9
    place, name, full = (cudnn, "allow_tf32", False) if newer is None else (newer, "fp32_precision", "ieee")
    before = getattr(place, name)
    setattr(place, name, full)
    try:
        yield
    finally:
        setattr(place, name, before)


def _agreed(
    compute: Compute, critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, records: RecordPairs
) -> int:
    """Return the numbers kept per record if this engine agrees with the reference, else zero."""
    try:
        terms = compute(critic, parameters, loss, records)
    except (UnknownParameterUse, RuntimeError, NotImplementedError):
        return 0
    index = torch.arange(len(records), device=records.real.device)
    found = UnitGradients(index, terms, UnitMembership(index, len(index), single=True), parameters)
    expected = per_record_reference(critic, loss, records)
    norms = expected.norm(dim=1)
    close = torch.allclose(found.norms(), norms, rtol=_AGREEMENT, atol=0)
    for row, each in enumerate(torch.eye(len(records), device=index.device)):
        difference = found.weighted_sum(each).double() - expected[row]
        close = close and bool(difference.norm() <= _AGREEMENT * norms[row])
    return -(-sum(term.numbers() for term in terms) // len(records)) if close else 0


def _made_up(like: RecordPairs, size: int) -> RecordPairs:
    """Return made-up records of the same shapes and types."""
    source = torch.Generator().manual_seed(size)

    def draw(values: Tensor) -> Tensor:
        shape = (size, *values.shape[1:])
        drawn = torch.rand(shape, generator=source) if values.is_floating_point() else torch.zeros(shape)
        return drawn.to(values.device, values.dtype)

    fake, condition, mix = (None if x is None else draw(x) for x in (like.fake, like.condition, like.mix))
    return RecordPairs(real=draw(like.real), fake=fake, condition=condition, mix=mix)


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Switch dropout off for a comparison, and back to what it was."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
