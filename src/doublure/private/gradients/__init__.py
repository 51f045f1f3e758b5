"""Per-record gradients of the whole critic loss, with the norms and weighted sums that clipping needs.

>>> from torch import nn
>>> import torch
>>> class Critic(nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.body = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
...     def forward(self, x, condition=None):
...         return self.body(x).squeeze(1)
>>> gradients = RecordGradients(Critic(), CriticLoss(kind="wgan", gradient_penalty=10.0))
>>> lot = gradients.lot(RecordPairs(real=torch.rand(6, 4), fake=torch.rand(6, 4), mix=torch.rand(6)))
>>> for part in lot:
...     part.norms().shape, part.weighted_sum(torch.ones(6)).shape
(torch.Size([6]), torch.Size([49]))
"""

from doublure.private.gradients.loss import CriticLoss, RecordPairs
from doublure.private.gradients.lots import LotGradients, RecordGradients
from doublure.private.gradients.reference import batch_gradient, per_record_reference
from doublure.private.gradients.units import UnitGradients

__all__ = [
    "CriticLoss",
    "LotGradients",
    "RecordGradients",
    "RecordPairs",
    "UnitGradients",
    "batch_gradient",
    "per_record_reference",
]
