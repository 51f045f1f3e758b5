"""Reference gradients in plain autograd: slow, short and easy to check.

:func:`batch_gradient` serves trainers without a guarantee. Tests, and the check before the first lot, compare the fast
engine with the per-record loop. ``torch.func`` serves critics that the tape does not know.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from doublure.private.gradients.loss import Critic, CriticLoss, RecordPairs, scored
from doublure.private.gradients.terms import DenseTerm, Term


def batch_gradient(critic: nn.Module, loss: CriticLoss, records: RecordPairs) -> Tensor:
    """Return the summed gradient of the loss, unclipped and hence without any guarantee.

    Returns:
        Flat, (P,), in the order of ``critic.parameters()``.
    """
    return _gradient(critic, loss, records, [p.detach().requires_grad_() for p in critic.parameters()])


def run_gradients(critic: nn.Module, loss: CriticLoss, records: RecordPairs, sizes: Sequence[int]) -> Tensor:
    """Return the summed gradients of runs of records, unclipped; not finite where one of its gradients is not.

    One backward pass a run, which is cheaper than its records' own gradients where only their sum is asked for.

    Args:
        critic: Left as it is.
        loss: The loss.
        records: B records.
        sizes: Number of records in each run, one run after another; together B.

    Returns:
        (runs, P), in the order of ``critic.parameters()``.
    """
    parameters = [p.detach().requires_grad_() for p in critic.parameters()]
    rows = torch.zeros(len(sizes), sum(p.numel() for p in parameters), dtype=parameters[0].dtype)
    rows = rows.to(parameters[0].device)
    call, start = _with_parameters(critic, parameters), 0
    for row, size in zip(rows, sizes, strict=True):
        if size:
            run = records if size == len(records) else records.take(slice(start, start + size))
            row.copy_(_summed(call, loss, run, parameters))
        start += size
    return rows


def per_record_reference(
    critic: nn.Module, loss: CriticLoss, records: RecordPairs, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Return every record's gradient, one record at a time.

    Args:
        critic: Left as it is.
        loss: The loss.
        records: B records.
        dtype: The precision to compute in.

    Returns:
        (B, P) in ``dtype``.
    """
    parameters = [p.detach().to(dtype).requires_grad_() for p in critic.parameters()]
    exact = records.to(dtype)
    rows = [_gradient(critic, loss, exact.take(slice(row, row + 1)), parameters) for row in range(len(records))]
    return torch.stack(rows) if rows else torch.zeros(0, sum(p.numel() for p in parameters), dtype=dtype)


def _gradient(critic: nn.Module, loss: CriticLoss, records: RecordPairs, parameters: list[Tensor]) -> Tensor:
    """Return the gradient (P,) of the records' summed loss with respect to stand-ins for the critic's parameters."""
    return _summed(_with_parameters(critic, parameters), loss, records, parameters)


def _summed(call: Critic, loss: CriticLoss, records: RecordPairs, parameters: list[Tensor]) -> Tensor:
    with torch.enable_grad():
        values = loss.per_record(call, records)
        found = torch.autograd.grad(values.sum(), parameters, allow_unused=True)
    pieces = zip(found, parameters, strict=True)
    return torch.cat([torch.zeros_like(p).flatten() if g is None else g.flatten() for g, p in pieces])


def _with_parameters(critic: nn.Module, parameters: list[Tensor]) -> Critic:
    """Return the critic as a function that uses other tensors for its parameters, in their order and precision."""
    stand_in = {id(old): new for old, new in zip(critic.parameters(), parameters, strict=True)}
    # Each module once, under one name: a module that occurs twice would be restored to what it was replaced with.
    state: dict[str, Tensor] = {}
    for path, module in critic.named_modules():
        own = dict(module.named_parameters(recurse=False, remove_duplicate=False))
        state |= {f"{path}.{name}".lstrip("."): stand_in[id(value)] for name, value in own.items()}
        for name, buffer in module.named_buffers(recurse=False, remove_duplicate=False):
            same = buffer.to(parameters[0].dtype) if buffer.is_floating_point() else buffer
            state[f"{path}.{name}".lstrip(".")] = same

    def call(x: Tensor, condition: Tensor | None) -> Tensor:
        scores: Tensor = functional_call(critic, state, (x, condition), tie_weights=False)
        return scores

    return call


def looped(critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, records: RecordPairs) -> list[Term]:
    """Return the gradients in a loop, for a critic that cannot be vectorised."""
    flat = torch.stack([batch_gradient(critic, loss, records.take(slice(i, i + 1))) for i in range(len(records))])
    pieces = torch.split(flat, [p.numel() for p in parameters], 1)
    return [DenseTerm(place, piece) for place, piece in enumerate(pieces)]


def vectorised(critic: nn.Module, parameters: Sequence[Tensor], loss: CriticLoss, records: RecordPairs) -> list[Term]:
    """Return the gradients by ``vmap(grad)`` over the critic as a function of one record."""

    def value(
        parameters: list[Tensor], real: Tensor, fake: Tensor | None, condition: Tensor | None, mixed: Tensor | None
    ) -> Tensor:
        call = _with_parameters(critic, parameters)
        given = None if condition is None else condition[None]

        def score(x: Tensor) -> Tensor:
            return scored(call, x[None], given).squeeze(0)

        total = loss.on_real(score(real))
        if fake is not None:
            total = total + loss.on_fake(score(fake))
        if mixed is not None:
            total = total + loss.on_slope(grad(score)(mixed)[None]).squeeze(0)
        return total

    inputs = (records.real, records.fake, records.condition, records.mixed() if loss.gradient_penalty else None)
    axes = tuple(None if x is None else 0 for x in inputs)
    constants = [p.detach() for p in parameters]
    found = vmap(grad(value), (None, *axes), randomness="different")(constants, *inputs)
    return [DenseTerm(place, piece.detach().flatten(1)) for place, piece in enumerate(found)]
