"""Record where a critic's parameters act, so that no parameter's gradient is formed for a single record.

While the tape runs, every call that a parameter takes part in passes through it. Known layers are recorded with their
inputs and outputs; any other use ends the recording with :class:`UnknownParameterUse`, and the caller falls back on a
slower engine. The parameters themselves are only read; nothing is hooked into the critic or left on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from doublure.private.gradients.layers import Affine, Convolution, Embedding, Layer, Linear


class UnknownParameterUse(Exception):
    """Signals that the critic uses a parameter in a way that the tape does not know."""


@dataclass(frozen=True)
class LayerCall:
    """One use of a layer: z = layer(a).

    Args:
        layer: The layer, with the places of its parameters.
        inputs: a, (rows, …).
        version: Of ``inputs``, to notice changes in place.
        arrival: Where in autograd's graph the cotangent of z, (rows, …), arrives. z itself is not needed, and may be
            overwritten by an activation in place.
    """

    layer: Layer
    inputs: Tensor
    version: int
    arrival: GradientEdge


class Tape(TorchFunctionMode):
    """Records the calls of one forward pass.

    Args:
        places: From the identity of each parameter to its place in ``critic.parameters()``.
        rows: Number of rows that every recorded tensor must have.
        twice: Whether the pass will be differentiated twice.
    """

    def __init__(self, places: Mapping[int, int], rows: int, *, twice: bool = False) -> None:
        super().__init__()
        self.calls: list[LayerCall] = []
        self._places = places
        self._rows = rows
        self._twice = twice

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Pass one call of torch through the tape."""
        kwargs = kwargs or {}
        if self._twice and func in _BENDS:
            return _BENDS[func](*args, **kwargs)
        if func in _HARMLESS or not (self._among(args) or self._among(kwargs.values())):
            return func(*args, **kwargs)
        if func not in _LAYERS:
            raise UnknownParameterUse(f"a parameter is used by {getattr(func, '__name__', func)}")
        return _LAYERS[func](self, *args, **kwargs)

    def finish(self) -> list[LayerCall]:
        """Return the calls, once sure that none of their inputs was changed in place afterwards."""
        if any(call.inputs._version != call.version for call in self.calls):
            raise UnknownParameterUse("a layer's input was changed in place")
        return self.calls

    def places(self, weight: Tensor | None, bias: Tensor | None) -> tuple[int, int | None]:
        """Return the places of a weight and a bias; refuse any that are computed instead of parameters."""
        place, beside = (None if x is None else self._places.get(id(x)) for x in (weight, bias))
        if place is None or (bias is not None and beside is None):
            raise UnknownParameterUse("a layer's weight or bias is computed")
        return place, beside

    def record(self, layer: Layer, inputs: Tensor, outputs: Tensor) -> Tensor:
        """Write one call down and return its output."""
        if inputs.shape[:1] != (self._rows,) or outputs.shape[:1] != (self._rows,):
            raise UnknownParameterUse("a layer's rows are not the records")
        if not outputs.requires_grad:
            # A copy, because a leaf of autograd's graph could not be overwritten in place by what follows.
            outputs = outputs.detach().requires_grad_().clone()
        self.calls.append(LayerCall(layer, inputs, inputs._version, get_gradient_edge(outputs)))
        return outputs

    def _among(self, values: Any) -> bool:
        """Say whether a parameter of the critic is among the values, at any depth."""
        for value in values:
            if isinstance(value, Tensor):
                if id(value) in self._places:
                    return True
            elif isinstance(value, (list, tuple)) and self._among(value):
                return True
        return False


def _constant(parameter: Tensor | None) -> Tensor | None:
    return None if parameter is None else parameter.detach()


def _linear(tape: Tape, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    layer = Linear(*tape.places(weight, bias))
    return tape.record(layer, input, functional.linear(input, weight.detach(), _constant(bias)))


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
        place, beside = tape.places(weight, bias)
        if input.dim() != dimensions + 2:
            raise UnknownParameterUse("a convolution of one record without a batch")
        kernel, apart = tuple(weight.shape[2:]), numbers(dilation)
        if padding == "same":
            # Odd excess goes to the far side, as torch does it; windows are then the plain ones.
            excess = [d * (k - 1) for d, k in zip(apart, kernel, strict=True)]
            input = functional.pad(input, [side for e in reversed(excess) for side in (e // 2, e - e // 2)])
        layer = Convolution(
            place,
            beside,
            kernel=kernel,
            stride=numbers(stride),
            padding=numbers(0 if isinstance(padding, str) else padding),
            dilation=apart,
            groups=groups,
        )
        outputs = function(input, weight.detach(), _constant(bias), layer.stride, layer.padding, apart, groups)
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
    place, _ = tape.places(weight, None)
    if max_norm is not None or scale_grad_by_freq or padding_idx is not None:
        raise UnknownParameterUse("an embedding with padding, a maximal norm or scaled gradients")
    return tape.record(Embedding(place), input, functional.embedding(input, weight.detach()))


def _layer_norm(
    tape: Tape,
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    features = tuple(range(input.dim() - len(normalized_shape), input.dim()))
    normal = functional.layer_norm(input, normalized_shape, None, None, eps)
    return _affine(tape, normal, weight, bias, features)


def _group_norm(
    tape: Tape,
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return _affine(tape, functional.group_norm(input, num_groups, None, None, eps), weight, bias, (1,))


def _affine(
    tape: Tape, inputs: Tensor, weight: Tensor | None, bias: Tensor | None, features: tuple[int, ...]
) -> Tensor:
    place, beside = tape.places(weight, bias)
    shape = [size if axis in features else 1 for axis, size in enumerate(inputs.shape)]
    scale, shift = (None if x is None else x.detach().view(shape) for x in (weight, bias))
    outputs = inputs if scale is None else inputs * scale
    return tape.record(Affine(place, beside, features), inputs, outputs if shift is None else outputs + shift)


_LAYERS: dict[Any, Callable[..., Tensor]] = {
    functional.linear: _linear,
    torch.conv1d: _convolution(torch.conv1d, 1),
    torch.conv2d: _convolution(torch.conv2d, 2),
    functional.embedding: _embedding,
    functional.layer_norm: _layer_norm,
    functional.group_norm: _group_norm,
}


class _PiecewiseLinear(torch.autograd.Function):
    """A leaky ReLU that autograd treats as a product with a constant, which it is away from its kink.

    Its second derivative is zero; torch's own carries these zeros back through the whole critic.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, negative_slope: float) -> Tensor:
        """Return the leaky ReLU."""
        ctx.save_for_backward(inputs.detach())
        ctx.negative_slope = negative_slope
        return functional.leaky_relu(inputs, negative_slope)

    @staticmethod
    def backward(ctx: Any, *arrived: Any) -> Any:
        """Return the cotangent times the slope, which autograd can differentiate in the cotangent alone."""
        (inputs,) = ctx.saved_tensors
        return torch.ops.aten.leaky_relu_backward(arrived[0], inputs, ctx.negative_slope, False), None


def _leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    outputs: Tensor = _PiecewiseLinear.apply(input, negative_slope)  # type: ignore[no-untyped-call]
    return outputs


def _relu(input: Tensor, inplace: bool = False) -> Tensor:
    return _leaky_relu(input, 0.0)


_BENDS: dict[Any, Callable[..., Tensor]] = {
    functional.leaky_relu: _leaky_relu,
    functional.relu: _relu,
    torch.relu: _relu,
    Tensor.relu: _relu,
}

# Reading a parameter's shape, type or device is no use of its value.
_HARMLESS = frozenset(
    [getattr(Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "is_cuda", "requires_grad")]
    + [Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.__len__]
)
