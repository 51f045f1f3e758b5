"""Where products are made in bfloat16, and where they never are."""

from __future__ import annotations

import pytest
import torch

from doublure.networks import bfloat16


@pytest.mark.parametrize(("found", "wanted"), [({"amx_bf16": True}, True), ({"avx512_bf16": True}, True), ({}, False)])
def test_a_processor_without_units_goes_on_as_usual(monkeypatch, found, wanted):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)
    assert bfloat16.has_units() is wanted
    with bfloat16.bfloat16_products("cpu"):
        product = torch.ones(8, 8) @ torch.ones(8, 8)
    assert product.dtype == (torch.bfloat16 if wanted else torch.float32)


def test_a_torch_that_cannot_say_goes_on_as_usual(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not bfloat16.has_units()


def test_other_devices_go_on_as_usual(monkeypatch):
    monkeypatch.setattr(bfloat16, "has_units", lambda: True)
    with bfloat16.bfloat16_products("cuda"):
        assert (torch.ones(8, 8) @ torch.ones(8, 8)).dtype == torch.float32
