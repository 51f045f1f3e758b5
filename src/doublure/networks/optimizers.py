"""Optimizers of torch that leave its compiler out: importing that takes a second, and nothing here is compiled."""

from __future__ import annotations

from inspect import unwrap

import torch


class _EagerOptimizer(torch.optim.Optimizer):
    """An optimizer whose methods are those that torch wraps: its wrappers import the compiler."""

    add_param_group = unwrap(torch.optim.Optimizer.add_param_group)
    load_state_dict = unwrap(torch.optim.Optimizer.load_state_dict)
    state_dict = unwrap(torch.optim.Optimizer.state_dict)
    zero_grad = unwrap(torch.optim.Optimizer.zero_grad)


class EagerAdam(_EagerOptimizer, torch.optim.Adam):
    """Adam, as torch has it."""

    step = torch.no_grad()(unwrap(torch.optim.Adam.step))


class EagerRMSprop(_EagerOptimizer, torch.optim.RMSprop):
    """RMSprop, as torch has it."""

    step = torch.no_grad()(unwrap(torch.optim.RMSprop.step))


class EagerSGD(_EagerOptimizer, torch.optim.SGD):
    """Gradient descent, as torch has it."""

    step = torch.no_grad()(unwrap(torch.optim.SGD.step))
