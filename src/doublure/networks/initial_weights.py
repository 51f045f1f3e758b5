"""Initial weights from an explicit generator, so that a public seed fixes them."""

from __future__ import annotations

import math

import torch
from torch import nn


@torch.no_grad()
def initialise(module: nn.Module, generator: torch.Generator, *, gain: float = 2.0) -> None:
    """Draw every linear and convolutional layer's weights with variance ``gain / inputs``; biases are zero.

    Args:
        module: The network; layers of other kinds keep their weights.
        generator: Source of the draws.
        gain: 2 for ReLU and similar (He et al. 2015), 1 for SELU (LeCun).
    """
    for layer in module.modules():
        if not isinstance(layer, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.ConvTranspose1d, nn.ConvTranspose2d)):
            continue
        weight = layer.weight
        inputs = math.prod(weight.shape[1:])
        if isinstance(layer, (nn.ConvTranspose1d, nn.ConvTranspose2d)):
            # In each dimension, an output depends on kernel / stride places of the input.
            inputs = weight.shape[0] * math.prod(weight.shape[2:]) // math.prod(layer.stride)
        weight.copy_(torch.randn(weight.shape, generator=generator) * math.sqrt(gain / inputs))
        if layer.bias is not None:
            layer.bias.zero_()
