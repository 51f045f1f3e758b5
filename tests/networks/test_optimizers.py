"""Optimizers step without the compiler of torch; methods/test_adversarial.py asks that they step as its own do."""

from __future__ import annotations

import sys
from inspect import unwrap

import pytest
import torch

from doublure.networks import optimizers


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "SGD"])
def test_the_compiler_of_torch_is_not_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrapped in ("add_param_group", "load_state_dict", "state_dict", "zero_grad"):
        method = unwrap(getattr(torch.optim.Optimizer, wrapped))
        monkeypatch.delattr(method, "__dynamo_disable", raising=False)  # which an earlier import left
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = getattr(optimizers, f"Eager{name}")([weight], 0.1)
    weight.square().sum().backward()
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    assert weight.requires_grad
    assert bool((weight < 1).all())
    with pytest.raises(ImportError):
        getattr(torch.optim, name)([weight], 0.1).step()  # whose import this test would notice
