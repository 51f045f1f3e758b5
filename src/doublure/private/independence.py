"""Refuse networks, and other functions of private records, in which one record's output depends on another's input.

Clipping bounds what one record can do to a sum only if no other record's part of it contains it. Batch normalisation,
minibatch statistics and packing break this silently (pitfalls.md, rule 9). Two things are checked: the layers' types,
and the outputs for made-up records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TypeAlias

import torch
from torch import Tensor, nn

from doublure.errors import SettingError, counted

Applied: TypeAlias = Callable[[Tensor, Tensor | None], Tensor | tuple[Tensor, ...]]
"""``(records (B, D…), condition (B, K) or None) -> outputs (B, …)``."""

_ROWS = 4
_TOLERANCE = 1e-4

# torch's layers that treat each row by itself. Other layers of torch are refused; layers from elsewhere are judged by
# their parts and by their outputs.
_ROW_BY_ROW: tuple[type[nn.Module], ...] = (
    nn.Identity, nn.Linear, nn.Bilinear, nn.Embedding, nn.EmbeddingBag, nn.Flatten, nn.Unflatten,
    nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
    nn.LayerNorm, nn.GroupNorm, nn.RMSNorm, nn.LocalResponseNorm, nn.PixelShuffle, nn.PixelUnshuffle,
    nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d, nn.ZeroPad1d, nn.ZeroPad2d, nn.ConstantPad1d,
    nn.ConstantPad2d, nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReplicationPad1d, nn.ReplicationPad2d,
    nn.CircularPad1d, nn.CircularPad2d,
    nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.LPPool1d, nn.LPPool2d, nn.Fold, nn.Unfold,
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.CELU, nn.SELU, nn.SiLU, nn.GELU, nn.Mish, nn.Sigmoid,
    nn.LogSigmoid, nn.Hardsigmoid, nn.Hardswish, nn.Tanh, nn.Hardtanh, nn.Tanhshrink, nn.Softplus, nn.Softsign,
    nn.Softmax, nn.LogSoftmax, nn.Softmin, nn.Softshrink, nn.Hardshrink, nn.Threshold, nn.GLU, nn.RReLU,
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.AlphaDropout, nn.FeatureAlphaDropout,
    nn.RNN, nn.LSTM, nn.GRU, nn.RNNCell, nn.LSTMCell, nn.GRUCell,
    nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer,
    nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict,
)  # fmt: skip


def refuse_cross_record(module: nn.Module, example_shape: Sequence[int], condition_width: int = 0) -> None:
    """Refuse a critic or generator in which records affect one another.

    Args:
        module: Called as ``module(x, condition)``; left as it was found.
        example_shape: The shape of one input, without the batch.
        condition_width: How wide a condition is; 0 for none, and then the module is called with None.

    Raises:
        SettingError: A layer is not known to treat records one by one; or an output depends on another record's
            input, or on how many records there are; or a forward pass changes what the module stores.
    """
    _refuse_layers(module)
    source = torch.Generator().manual_seed(0)
    like = next(module.parameters(), torch.zeros(()))
    records = torch.rand((_ROWS, *example_shape), generator=source).to(like.device, like.dtype)
    condition = torch.rand((_ROWS, condition_width), generator=source).to(records) if condition_width else None
    stored = {name: value.clone() for name, value in module.named_buffers()}
    # Dropout draws from the global generator, which is left as it was found.
    state = torch.get_rng_state()
    training = [(layer, layer.training) for layer in module.modules()]
    try:
        _refuse_derivatives(module, records, condition, _CRITIC)
        for name, value in module.named_buffers():
            if not torch.equal(value, stored[name]):
                raise _refusal(f"a forward pass changes {name}", _CRITIC)
        # Without dropout, whose draws would make two passes differ.
        module.eval()
        _refuse_values(module, records, condition, _CRITIC)
    finally:
        torch.set_rng_state(state)
        for layer, before in training:
            layer.training = before
        for name, value in module.named_buffers():
            value.copy_(stored[name])


def refuse_meeting_rows(
    function: Applied, body: Tensor, condition: Tensor | None, *, field: str, batch: int | None = None
) -> None:
    """Refuse a function of private records in which one record's output depends on another record.

    Args:
        function: Called with made-up records.
        body: ``(0, D…)``, for shape, device and type.
        condition: ``(0, K)`` likewise, if there is one.
        field: Name of the refused function, for the message.
        batch: The only batch size in use, if there is one: the output may then depend on the number of rows.

    Raises:
        SettingError: An output depends on another record's input, or on how many records there are.
    """
    source = torch.Generator().manual_seed(0)
    rows = batch or _ROWS

    def made_up(like: Tensor) -> Tensor:
        return torch.rand((rows, *like.shape[1:]), generator=source).to(like)

    records, conditions = made_up(body), None if condition is None else made_up(condition)
    _refuse_derivatives(function, records, conditions, field)
    _refuse_values(function, records, conditions, field, alone=batch is None)


_CRITIC = "critic or generator"


def _refusal(what: str, field: str) -> SettingError:
    return SettingError(
        f"records are not independent: {what}",
        field=field,
        remedy="use LayerNorm or GroupNorm and no minibatch statistics, so that each record is treated by itself",
    )


def _refuse_layers(module: nn.Module) -> None:
    for name, layer in module.named_modules():
        kind = type(layer)
        from_torch = kind.__module__.startswith("torch.")
        known = kind in _ROW_BY_ROW if from_torch else not isinstance(layer, nn.modules.batchnorm._NormBase)
        instance = isinstance(layer, nn.modules.instancenorm._InstanceNorm) and not layer.track_running_stats
        if not known and not instance:
            raise _refusal(f"{name or 'it'} is a {kind.__name__}", _CRITIC)
        if getattr(layer, "batch_first", True) is False:
            raise _refusal(f"{name or 'it'} has batch_first=False", _CRITIC)


def _refuse_derivatives(function: Applied, records: Tensor, condition: Tensor | None, field: str) -> None:
    """Refuse if d out_i / d in_j differs from zero for any i ≠ j."""
    inputs = [x.clone().requires_grad_() for x in (records, condition) if x is not None]
    with torch.enable_grad():
        outputs = _outputs(function, inputs[0], inputs[1] if len(inputs) > 1 else None, field)
        # Of a whole batch the first and the last: each row is a walk back through all that was computed.
        for row in range(len(records)) if len(records) <= _ROWS else (0, len(records) - 1):
            if not outputs.requires_grad:
                return
            found = torch.autograd.grad(outputs[row].sum(), inputs, retain_graph=True, allow_unused=True)
            others = torch.arange(len(records)) != row
            if any(bool((x[others] != 0).any()) for x in found if x is not None):
                raise _refusal("an output changes with another record's input", field)


def _refuse_values(
    function: Applied, records: Tensor, condition: Tensor | None, field: str, *, alone: bool = True
) -> None:
    """Refuse if an output changes when the other records change or are left out.

    Derivatives miss detached values and comparisons.
    """

    def differ(one: Tensor, other: Tensor) -> bool:
        return not torch.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE)

    with torch.no_grad():
        before = _outputs(function, records, condition, field)
        # Rows may meet one way alone, as in a sum that runs along them; and what a rank decides changes when all others
        # are above, or when they are below.
        for held, towards in product((0, len(records) - 1), (100, -100)):
            moved = _others_moved(records, held, towards)
            beside = None if condition is None else _others_moved(condition, held, towards)
            if differ(before[held], _outputs(function, moved, beside, field)[held]):
                raise _refusal("an output changes with another record's input", field)
        if not alone:
            return
        one = _outputs(function, records[:1], None if condition is None else condition[:1], field)
        if differ(before[:1], one):
            raise _refusal("an output changes with the number of records", field)


def _others_moved(inputs: Tensor, held: int, towards: int) -> Tensor:
    """Return the inputs with all rows changed except one."""
    moved = 3 * inputs + towards
    moved[held] = inputs[held]
    return moved


def _outputs(function: Applied, records: Tensor, condition: Tensor | None, field: str) -> Tensor:
    """Return all outputs side by side ``(B, …)``."""
    found = function(records, condition)
    outputs = found if isinstance(found, tuple) else (found,)
    for each in outputs:
        if each.shape[:1] != records.shape[:1]:
            raise _refusal(f"{counted(len(records), 'input')} with outputs of shape {tuple(each.shape)}", field)
    return torch.cat([each.reshape(len(records), -1) for each in outputs], dim=1)
