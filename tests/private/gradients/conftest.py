"""Critics and records, as fixtures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from critics import NORMALISED, OTHERS, PAIRED, Scorer, mlp, records, seeded
from torch import nn

from doublure.private.gradients import RecordPairs


@pytest.fixture(params=PAIRED)
def paired(request: pytest.FixtureRequest) -> tuple[nn.Module, tuple[int, ...]]:
    make, shape = PAIRED[request.param]
    return seeded(lambda: Scorer(make())), shape


@pytest.fixture(params=NORMALISED)
def normalised(request: pytest.FixtureRequest) -> tuple[nn.Module, tuple[int, ...]]:
    make, shape = NORMALISED[request.param]
    return seeded(lambda: Scorer(make())), shape


@pytest.fixture(params=OTHERS)
def other(request: pytest.FixtureRequest) -> tuple[nn.Module, tuple[int, ...], str]:
    make, shape, way = OTHERS[request.param]
    return seeded(lambda: Scorer(make())), shape, way


@pytest.fixture(scope="session")
def make_records() -> Callable[..., RecordPairs]:
    return records


@pytest.fixture(scope="session")
def make_critic() -> Callable[..., nn.Module]:
    """Return a maker of critics: from a body, or from an activation, a width and a number of hidden units."""

    def make(
        body: Callable[[], nn.Module] | None = None,
        *,
        activation: nn.Module | None = None,
        width: int = 5,
        hidden: int = 16,
        table: Callable[[], nn.Module] | None = None,
    ) -> nn.Module:
        inner = body or (lambda: mlp(activation or nn.LeakyReLU(0.2), width, hidden))
        return seeded(lambda: Scorer(inner(), None if table is None else table()))

    return make
