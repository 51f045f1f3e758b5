"""The stacked autoencoder of ``benchmarks``, whose features the papers' attacked classifiers learn from."""

import importlib.util
from pathlib import Path

import torch
from torch.nn import functional

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "denoising_autoencoder.py"


def test_a_stacked_autoencoder_undoes_noise_layer_by_layer(monkeypatch):
    spec = importlib.util.spec_from_file_location("denoising_autoencoder", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source, trained = torch.Generator().manual_seed(0), []
    pair = module.autoencoder((16, 8, 4), source)
    inputs = torch.eye(4).repeat(40, 4)
    before = functional.mse_loss(pair[1](pair[0](inputs)), inputs)
    one_layer = module._undo_noise

    def heard(encode, decode, seen, *rest):
        trained.append((len(encode), len(decode), seen.shape[1], decode(encode(seen)).shape[1]))
        one_layer(encode, decode, seen, *rest)

    monkeypatch.setattr(module, "_undo_noise", heard)
    module.compress(pair, inputs, source, epochs=300)
    assert trained == [(2, 2, 16, 16), (2, 2, 8, 8), (4, 4, 16, 16)]
    assert functional.mse_loss(pair[1](pair[0](inputs)), inputs) < before / 2
