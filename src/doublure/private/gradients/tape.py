"""Recording where a critic's parameters act, so that no gradient of a parameter is ever formed for a single record.

While the tape runs, every call that a parameter takes part in passes through it: known layers are written down with
their inputs and outputs, anything else ends the recording with :class:`Untaped`, and the caller falls back on a
slower way. The parameters themselves are only read; nothing is hooked into the critic or left on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from doublure.private.gradients.layers import Affine, Convolution, Embedding, Layer, Linear


class Untaped(Exception):  # noqa: N818 - a signal between two ways of computing the same thing, not an error
    """The critic uses a parameter in a way the tape does not know."""


@dataclass(frozen=True)
class Call:
    """One use of a layer: z = layer(a).

    Args:
        layer: What acted, with the places of its parameters.
        inputs: a, (rows, …).
        outputs: z, (rows, …).
    """

    layer: Layer
    inputs: Tensor
    outputs: Tensor


class Tape(TorchFunctionMode):
    """Records the calls of one forward pass.

    Args:
        places: From the identity of each parameter to its place in ``critic.parameters()``.
        rows: How many rows every recorded tensor must have.
        twice: Whether the pass will be differentiated twice.
    """

    def __init__(self, places: Mapping[int, int], rows: int, *, twice: bool = False) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self.twice = twice
        self._places = places
        self._rows = rows
        self._versions: list[tuple[int, int]] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Pass one call of torch through the tape."""
        kwargs = kwargs or {}
        handler = _HANDLERS.get(func)
        if handler is not None:
            return handler(self, *args, **kwargs)
        if func not in _HARMLESS and (self._among(args) or self._among(kwargs.values())):
            raise Untaped(f"a parameter is used by {getattr(func, '__name__', func)}")
        return func(*args, **kwargs)

    def finish(self) -> list[Call]:
        """Return the calls, once sure that none of their tensors was changed in place afterwards."""
        for call, versions in zip(self.calls, self._versions, strict=True):
            if (call.inputs._version, call.outputs._version) != versions:
                raise Untaped("a layer's input or output was changed in place")
        return self.calls

    def place(self, parameter: Tensor | None) -> int | None:
        """Return the place of a parameter of the critic, or None for any other tensor."""
        return None if parameter is None else self._places.get(id(parameter))

    def record(self, layer: Layer, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Write one call down and return its output, which later gradients are taken with respect to."""
        if inputs.shape[:1] != (self._rows,) or outputs.shape[:1] != (self._rows,):
            raise Untaped("a layer's rows are not the records")
        if not outputs.requires_grad:
            outputs = outputs.detach().requires_grad_()
        self.calls.append(Call(layer, inputs, outputs))
        self._versions.append((inputs._version, outputs._version))
        return outputs

    def _among(self, values: Any) -> bool:
        """Tell whether a parameter of the critic is among the values, however deep."""
        for value in values:
            if isinstance(value, Tensor):
                if id(value) in self._places:
                    return True
            elif isinstance(value, (list, tuple)) and self._among(value):
                return True
        return False


def _constant(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.detach()


def _required(tape: Tape, weight: Tensor, bias: Tensor | None) -> tuple[int, int | None]:
    """Return the places of a weight and a bias that are parameters; refuse mixtures with other tensors."""
    place, beside = tape.place(weight), tape.place(bias)
    if place is None or (bias is not None and beside is None):
        raise Untaped("a layer's weight or bias is computed")
    return place, beside


def _linear(tape: Tape, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    if tape.place(weight) is None and tape.place(bias) is None:
        return functional.linear(inputs, weight, bias)
    layer = Linear(*_required(tape, weight, bias))
    return tape.record(layer, inputs, functional.linear(inputs, weight.detach(), _constant(bias)))


def _convolution(function: Callable[..., Tensor], dimensions: int) -> Callable[..., Tensor]:
    def numbers(value: int | Sequence[int]) -> tuple[int, ...]:
        return (value,) * dimensions if isinstance(value, int) else tuple(value) * (dimensions // len(value))

    def handler(
        tape: Tape,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
    ) -> Tensor:
        if tape.place(weight) is None and tape.place(bias) is None:
            return function(input, weight, bias, stride, padding, dilation, groups)
        if input.dim() != dimensions + 2:
            raise Untaped("a convolution of one record without a batch")
        kernel, dilation = tuple(weight.shape[2:]), numbers(dilation)
        if padding == "same":
            # Odd excess goes to the far side, as torch does it; the window arithmetic below is then the plain one.
            excess = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
            sides = [side for e in reversed(excess) for side in (e // 2, e - e // 2)]
            input, padding = functional.pad(input, sides), 0
        padding = numbers(0 if isinstance(padding, str) else padding)
        layer = Convolution(
            *_required(tape, weight, bias),
            kernel=kernel, stride=numbers(stride), padding=padding, dilation=dilation, groups=groups,
        )  # fmt: skip
        outputs = function(input, weight.detach(), _constant(bias), layer.stride, padding, dilation, groups)
        return tape.record(layer, input, outputs)

    return handler


def _embedding(
    tape: Tape,
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    place = tape.place(weight)
    if place is None:
        return functional.embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if max_norm is not None or scale_grad_by_freq or padding_idx is not None:
        raise Untaped("an embedding with padding, a maximal norm or scaled gradients")
    return tape.record(Embedding(place), input, functional.embedding(input, weight.detach()))


def _layer_norm(
    tape: Tape,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    if tape.place(weight) is None and tape.place(bias) is None:
        return functional.layer_norm(input, normalized_shape, weight, bias, eps)
    normal = functional.layer_norm(input, normalized_shape, None, None, eps)
    return _affine(tape, normal, weight, bias, features=tuple(range(input.dim() - len(normalized_shape), input.dim())))


def _group_norm(
    tape: Tape,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    if tape.place(weight) is None and tape.place(bias) is None:
        return functional.group_norm(input, num_groups, weight, bias, eps)
    normal = functional.group_norm(input, num_groups, None, None, eps)
    return _affine(tape, normal, weight, bias, features=(1,))


def _affine(
    tape: Tape, inputs: Tensor, weight: Tensor | None, bias: Tensor | None, features: tuple[int, ...]
) -> Tensor:
    if weight is None:
        raise Untaped("a normalisation with a bias and no weight")
    layer = Affine(*_required(tape, weight, bias), features=features)
    shape = [size if axis in features else 1 for axis, size in enumerate(inputs.shape)]
    outputs = inputs * weight.detach().view(shape)
    return tape.record(layer, inputs, outputs if bias is None else outputs + bias.detach().view(shape))


class _PiecewiseLinear(torch.autograd.Function):
    """A leaky ReLU that autograd takes for what it is away from its kink: a product with a constant.

    Its second derivative is zero; torch's own carries these zeros back through the whole critic.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, negative_slope: float) -> Tensor:
        ctx.save_for_backward(inputs.detach())
        ctx.negative_slope = negative_slope
        return functional.leaky_relu(inputs, negative_slope)

    @staticmethod
    def backward(ctx: Any, arrived: Tensor) -> tuple[Tensor, None]:
        (inputs,) = ctx.saved_tensors
        return torch.ops.aten.leaky_relu_backward(arrived, inputs, ctx.negative_slope, False), None


def _leaky_relu(tape: Tape, input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    if not tape.twice:
        return functional.leaky_relu(input, negative_slope)
    outputs: Tensor = _PiecewiseLinear.apply(input, negative_slope)
    return outputs


def _relu(tape: Tape, input: Tensor, inplace: bool = False) -> Tensor:
    return _leaky_relu(tape, input, 0.0)


def _elu(tape: Tape, input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return functional.elu(input, alpha)


def _out_of_place(function: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    def handler(tape: Tape, input: Tensor, inplace: bool = False) -> Tensor:
        return function(input)

    return handler


_HANDLERS: dict[Any, Callable[..., Any]] = {
    functional.linear: _linear,
    torch.conv1d: _convolution(torch.conv1d, 1),
    torch.conv2d: _convolution(torch.conv2d, 2),
    functional.embedding: _embedding,
    functional.layer_norm: _layer_norm,
    functional.group_norm: _group_norm,
    functional.leaky_relu: _leaky_relu,
    functional.relu: _relu,
    functional.elu: _elu,
    functional.selu: _out_of_place(functional.selu),
    functional.silu: _out_of_place(functional.silu),
    torch.relu: _relu,
    Tensor.relu: _relu,
}

# Reading a parameter's shape, type or device is no use of its value.
_HARMLESS = frozenset(
    [getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "is_cuda", "requires_grad")]
    + [Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.__len__]
)
