"""Forecast, from public figures, of the accuracy of a private labeller and of labels drawn without one.

Two classes that a linear model separates with margin 2 z in units of its scores' spread are told apart with accuracy
Φ(z). Noise in the model adds to the spread: with a class known by n images to a unit of noise, z = Z / √(1 + (c / n)²).

For the labeller Z = 1.65, the 95 % that linear models on scattering features reach on images without noise. Its k
directions, each with spread 1 / √k of a vector of length 1, put the classes' means √(4 Z² / k) apart, and the labeller
has its share s of the budget, so that c = k / (2 Z √s) = 214. It is trained on the classes as frequent as they are:
by Bayes' rule its threshold moves by the logarithm of the odds of the most frequent class, log r, which costs the
rarest class log r / (2 z). Images that are drawn for a label meet no such odds.

Images that are drawn for a label show it less well (Z = 1.28, 90 %: Gaussians of clothes teach 79 % where a labeller
makes it 83 %). They suffer less from noise, since released numbers are shrunk. Their c follows from the measured
crossing: with ten equal labels a labeller begins to pay at 200 images a label for ε = 1, which is n = 53.6
(docs/journal/images.md, "From how many images a labeller is worth its share").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

_NORMAL = NormalDist()
_SEPARATED = 1.65
_WIDTH, _SHARE = 500, 0.5
"""Usual directions of a labeller, and its usual share of the budget."""
_HALF_KNOWN = _WIDTH / (2 * _SEPARATED * math.sqrt(_SHARE))
_SHOWN = 1.28
_CROSSING = 53.6
_AT_CROSSING = _SEPARATED / math.hypot(1, _HALF_KNOWN / _CROSSING)
_HALF_SHOWN = _CROSSING * math.sqrt((_SHOWN / _AT_CROSSING) ** 2 - 1)
FROM_KNOWN = 2_700.0
"""Geometric mean of n = 750, where clothes drawn by Gaussians teach no more with a labeller that is right for 87 %, and
n = 9,800, where CIFAR-10 teaches more (docs/journal/images.md). What a labeller picks out of a Gaussian lies near the
borders of labels: below, picking costs as much as right labels bring."""
_LEAST = 1e-9


@dataclass(frozen=True)
class LabelForecast:
    """Forecast accuracies for the rarest label.

    Attributes:
        labeller: Of a private labeller.
        drawn: Of images drawn for that label, which the labeller would overrule.
        known: Images of the label over the noise.
        from_known: From how many on a labeller pays at all.
    """

    labeller: float
    drawn: float
    known: float
    from_known: float = 0.0

    @property
    def pays(self) -> bool:
        """Whether the labeller is more often right than what it overrules."""
        return self.labeller > self.drawn and self.known >= self.from_known


def forecast_labels(counts: Sequence[float], noise: float, *, gaussian: bool = False) -> LabelForecast:
    """Return the forecast for labels of so many images.

    Args:
        counts: Images of each label, public or released.
        noise: σ of all releases together.
        gaussian: Whether images are drawn by a Gaussian for each label.

    Example:
        >>> forecast_labels([6_000] * 10, 3.7).pays, forecast_labels([100] * 10, 3.7).pays
        (True, False)
        >>> forecast_labels([3_877, 529], 0.53).pays
        False
    """
    rarest, most = max(min(counts), _LEAST), max(counts)
    known = max(rarest / noise, _LEAST)
    margin = _SEPARATED / math.hypot(1, _HALF_KNOWN / known)
    labeller = _NORMAL.cdf(margin - math.log(max(most, rarest) / rarest) / (2 * margin))
    return LabelForecast(
        labeller=labeller,
        drawn=_NORMAL.cdf(_SHOWN / math.hypot(1, _HALF_SHOWN / known)),
        known=known,
        from_known=FROM_KNOWN if gaussian else 0.0,
    )
