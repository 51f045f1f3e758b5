"""Privacy events: accesses to private data, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from doublure.errors import SettingError
from doublure.support.checks import require_choice, require_number, require_whole

Sampling = Literal["poisson", "without-replacement"]

_LEAST_MULTIPLIER = 1e-6  # whose square still has all its digits
_LEAST_SCALE = 1e-2  # below it the noise is zero in all but every 10^2000th cell


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """Sums of clipped contributions with Gaussian noise, each over a freshly drawn lot.

    Attributes:
        noise_multiplier: Standard deviation of the noise over the clipping norm C (not 2C), >= 1e-6.
        sample_rate: Probability q of a unit being in a lot, in (0, 1]; 1 is the full batch.
        steps: Number of noisy sums, 0 to 1e9.
        sampling: Independent ("poisson") or fixed-size lots drawn "without-replacement".
        filter_steps: B of each unit's privacy filter (:mod:`doublure.private.filters`): the squares of what it adds,
            over C², sum to B at most. Full batches alone; None: there is no filter.
    """

    noise_multiplier: float
    sample_rate: float = 1.0
    steps: int = 1
    sampling: Sampling = "poisson"
    filter_steps: int | None = None

    def __post_init__(self) -> None:
        require_number(self.noise_multiplier, "noise_multiplier", least=_LEAST_MULTIPLIER)
        require_number(self.sample_rate, "sample_rate", above=0.0, most=1.0)
        require_whole(self.steps, "steps", least=0)
        require_choice(self.sampling, "sampling", get_args(Sampling))
        if self.filter_steps is not None:
            require_whole(self.filter_steps, "filter_steps", least=1)
            if self.sample_rate != 1.0:
                raise SettingError("needs full batches", field="filter_steps", remedy="set sample_rate to 1")

    @property
    def paid_steps(self) -> int:
        """Steps at full length that one unit pays for at most."""
        return self.steps if self.filter_steps is None else min(self.steps, self.filter_steps)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussianEvent:
    """Tables of counts, each with independent discrete Gaussian noise in every cell (Canonne, Kamath, Steinke 2020).

    Attributes:
        scale: The noise's parameter σ, in counts, >= 0.01.
        tables: How many tables, 0 to 1e9; a record counts in one cell of each.
        records: How many records a unit has at most.
    """

    scale: float
    tables: int = 1
    records: int = 1

    def __post_init__(self) -> None:
        require_number(self.scale, "scale", least=_LEAST_SCALE)
        require_whole(self.tables, "tables", least=0)
        require_whole(self.records, "records", least=1)


@dataclass(frozen=True, kw_only=True)
class PureEvent:
    """One use of any (ε, 0)-DP mechanism: Laplace, geometric, exponential."""

    epsilon: float

    def __post_init__(self) -> None:
        require_number(self.epsilon, "epsilon", above=0.0)


@dataclass(frozen=True, kw_only=True)
class ApproximateEvent:
    """One use of any (ε, δ)-DP mechanism, such as a thresholded histogram."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        require_number(self.epsilon, "epsilon", above=0.0)
        require_number(self.delta, "delta", above=0.0, below=1.0)


Event = GaussianEvent | DiscreteGaussianEvent | PureEvent | ApproximateEvent

_EVENT_TYPES: dict[str, type[GaussianEvent | DiscreteGaussianEvent | PureEvent | ApproximateEvent]] = {
    "gaussian": GaussianEvent,
    "discrete-gaussian": DiscreteGaussianEvent,
    "pure": PureEvent,
    "approximate": ApproximateEvent,
}


def event_to_json(event: Event) -> dict[str, object]:
    """Return the event as a JSON object.

    Example:
        >>> event_to_json(PureEvent(epsilon=0.5))
        {'type': 'pure', 'epsilon': 0.5}
    """
    name = next(name for name, kind in _EVENT_TYPES.items() if isinstance(event, kind))
    said = {field: getattr(event, field) for field in event.__dataclass_fields__}
    return {"type": name} | {field: value for field, value in said.items() if value is not None}


def event_from_json(data: Mapping[str, object]) -> Event:
    """Return the event that :func:`event_to_json` wrote.

    Raises:
        SettingError: The type is unknown, or a field is missing, unknown or out of range.

    Example:
        >>> event_from_json({"type": "gaussian", "noise_multiplier": 1.1, "steps": 100})
        GaussianEvent(noise_multiplier=1.1, sample_rate=1.0, steps=100, sampling='poisson')
    """
    if not isinstance(data, Mapping):
        raise SettingError("must be an object", field="event", remedy='write {"type": "gaussian", …}')
    fields: dict[str, Any] = {key: value for key, value in data.items() if key != "type"}
    name = data.get("type")
    kind = _EVENT_TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise SettingError("is unknown", field="event type", remedy=f"use one of {', '.join(_EVENT_TYPES)}")
    try:
        return kind(**fields)
    except TypeError:
        known = ", ".join(kind.__dataclass_fields__)
        raise SettingError("has missing or unknown keys", field=f"{name} event", remedy=f"known are {known}") from None
