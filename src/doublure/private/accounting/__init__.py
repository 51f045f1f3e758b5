"""Privacy events as plain data, and their cost.

An **event** says what touched the records; the mathematics of composing events is that of ``dp-accounting`` and
never our own. Every figure returned is an upper bound on the true privacy loss.

Supported pairs (all others raise :class:`~doublure.errors.SettingError`, naming the way out):

=====================================  ============  =====  =====
event                                  relation      pld    rdp
=====================================  ============  =====  =====
Gaussian, Poisson lots (q < 1)         add-remove    yes    yes
Gaussian, Poisson lots (q < 1)         replace-one   yes    no
Gaussian, fixed-size lots (q < 1)      add-remove    no     no
Gaussian, fixed-size lots (q < 1)      replace-one   no     yes
Gaussian, full batch (q = 1)           both          yes    yes
discrete Gaussian, one record a unit   both          yes    yes
discrete Gaussian, several records     both          no     yes
Pure, Approximate                      both          yes    yes
=====================================  ============  =====  =====

Plans are priced for add-remove alone. replace-one stands here for the published vectors of fixed-size lots, and because
``epsilon`` and ``noise_multiplier`` keep their arguments.

A noise multiplier is always the noise's standard deviation over the clipping norm C, so the same number under
"replace-one", where one unit can move the sum by 2C, gives a weaker guarantee. The ε of a pure or approximate event
must have been stated for the relation it is analysed under.

``pld`` (privacy loss distributions, numerical) is tight; ``rdp`` (Rényi) is looser, quicker, and the only one of the
two for δ below about 1e-11: the powers in Fourier space behind ``pld`` carry a rounding error, which can make
dp-accounting report too little. A bound on it is taken off δ here, and a δ that this would halve is refused.
"""

from doublure.private.accounting.calibration import calibrate, noise_multiplier
from doublure.private.accounting.composition import (
    Accountant,
    delta_of,
    epsilon,
    epsilon_of,
    group_privacy,
    log_moments,
)
from doublure.private.accounting.curves import Relation
from doublure.private.accounting.events import (
    ApproximateEvent,
    DiscreteGaussianEvent,
    Event,
    GaussianEvent,
    PureEvent,
    Sampling,
    event_from_json,
    event_to_json,
)

__all__ = [
    "Accountant",
    "ApproximateEvent",
    "DiscreteGaussianEvent",
    "Event",
    "GaussianEvent",
    "PureEvent",
    "Relation",
    "Sampling",
    "calibrate",
    "delta_of",
    "epsilon",
    "epsilon_of",
    "event_from_json",
    "event_to_json",
    "group_privacy",
    "log_moments",
    "noise_multiplier",
]
