"""What a method is: its settings, what it touches, what it costs, and how it trains.

A method's module imports no torch until :meth:`Method.train` or :meth:`Method.build` is called, so that a plan stays
quick. A new method is one folder and one line in :mod:`doublure.methods.registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from typing_extensions import TypeVar

from doublure.access import Access
from doublure.encode.encoder import Encoder
from doublure.errors import SettingError, printable
from doublure.guarantee import Guarantee, Kind
from doublure.private.noise import source
from doublure.schema import Schema
from doublure.schema.kinds import KINDS
from doublure.training.job import Job, State
from doublure.training.owned import AtOwner
from doublure.training.settings import MethodSettings, Work

if TYPE_CHECKING:
    from doublure.networks.array_generator import AnyGenerator
    from doublure.private.bayesian import BayesianAccountant
    from doublure.training.architectures import Critic

S = TypeVar("S", bound=MethodSettings, default=MethodSettings)
E = TypeVar("E", bound=Encoder, default=Encoder)


class Method(ABC, Generic[S, E]):
    """One way to train a generator, from settings ``S`` and records as an encoder ``E`` writes them.

    What has a default is right for a method whose noise the plan calibrates, and which claims what was planned.

    Attributes:
        name: As it is asked for.
        kinds: The kinds of data that it takes.
        guarantee: The kind of its claim.
        settings_type: The model of its settings; one for each kind of data, if they differ.
    """

    name: ClassVar[str]
    kinds: ClassVar[frozenset[str]]
    guarantee: ClassVar[Kind]
    settings_type: ClassVar[type[MethodSettings] | Mapping[str, type[MethodSettings]]]

    @abstractmethod
    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        """Return the settings with every None decided from public facts, and from public files that they name."""

    @abstractmethod
    def sample_rate(self, schema: Schema, settings: S) -> float | None:
        """Return q, if the method draws lots."""

    @abstractmethod
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        """Return what training touches, at this noise; learned facts are the plan's own accesses."""

    @abstractmethod
    def work(self, schema: Schema, settings: S) -> Work:
        """Return what training computes and holds."""

    @abstractmethod
    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        """Return what the user should know before the data is read."""

    def knows_shares(self, schema: Schema) -> bool:
        """Whether what is released says how frequent conditions are, so that nobody need declare or buy their shares.

        The generator is then one that :class:`doublure.networks.steering.KnowsConditions` describes.
        """
        return False

    def needs_torch(self, schema: Schema, settings: S) -> bool:
        """Whether training computes with torch, which is installed on request alone."""
        return True

    def asks_owners(self, schema: Schema, settings: S) -> bool:
        """Whether all that training asks can be asked of records that stay with their owners (docs/federated.md)."""
        return bool(self.work(schema, settings).records_bytes)

    def at_owner(self, encoder: E, settings: S) -> AtOwner:
        """Return what an owner of records makes of what it is asked beside counts.

        Args:
            encoder: Of the resolved schema.
            settings: Of the owner's plan.
        """
        return AtOwner()

    def ready(self, schema: Schema, settings: S) -> None:
        """Look whether all that a fit needs beside the private data is there, before anything is charged.

        Args:
            schema: Of the private data, as planned.
            settings: With defaults resolved.
        """
        return

    def rehearsed(self, settings: S) -> S | None:
        """Return the settings of a fit that tries a plan on no record before it is charged: few steps, the same shapes.

        None: the generator is built and not trained, as where training needs records.

        Args:
            settings: With all decided.
        """
        return None

    @abstractmethod
    def build(self, encoder: E, settings: S, seed: int) -> AnyGenerator:
        """Return an untrained generator of the right shape."""

    @abstractmethod
    def train(self, job: Job[S, E]) -> AnyGenerator:
        """Train and return the generator to release."""

    def white_box(self, encoder: E, settings: S, kept: State) -> Critic | None:
        """Return the critic that a run has kept in its last state, for attacks that look inside; None: it has none.

        Raises:
            InputError: What the critic takes of a record cannot be made any more.
        """
        return None

    # -- figures of the settings ---------------------------------------------------------------------------------

    def sample_noise(self, settings: S) -> int:
        """Return how many standard normal numbers a sample takes for a record."""
        return 1

    def max_grad_norm(self, settings: S) -> float | None:
        """Return C, where one bound clips all gradients."""
        return None

    def noise_source(self, settings: S) -> str:
        """Return what a claim names as the source of its noise, where that is not exact by itself."""
        return source().name

    def estimation(self, settings: S) -> Estimation | None:
        """Return how the expected loss is estimated afterwards, if it is."""
        return None

    # -- noise and claim -----------------------------------------------------------------------------------------

    def decide_noise(
        self, schema: Schema, settings: S, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> S:
        """Return the settings with the noise decided that they fix, and the plan does not calibrate.

        Args:
            schema: The public facts.
            settings: With defaults resolved.
            learned: The accesses that buy facts.
            epsilon: The total that was asked for, or the ceiling on ε_μ.
            delta: The total δ, or δ_μ.

        Raises:
            SettingError: No noise is enough.
        """
        return settings

    def given_noise(self, settings: S) -> float | None:
        """Return σ where the settings give it in place of ε, which then follows from it; None: they do not."""
        return None

    def fixed_noise(self, settings: S) -> FixedNoise | None:
        """Return the noise that the settings fix beside what is claimed; None: it follows from ε, or ε from it."""
        return None

    def planned_claim(self, composed: Guarantee, settings: S, *, epsilon: float, delta: float) -> Guarantee:
        """Return what a plan claims.

        Args:
            composed: The (ε, δ) that everything composes to, of kind dp.
            settings: With all noise decided.
            epsilon: What was asked for.
            delta: What was asked for.
        """
        return composed

    def forecast(self, planned: Guarantee, settings: S, touches: tuple[Access, ...], schema: Schema) -> tuple[str, ...]:
        """Return what a plan says beside its prices, line by line: what is decided, or is measured afterwards."""
        return ()

    def final_claim(
        self,
        planned: Guarantee,
        settings: S,
        touches: tuple[Access, ...],
        measured: BayesianAccountant | None,
    ) -> tuple[Guarantee, dict[str, Any] | None]:
        """Return what a finished run claims, and the figures that decided it, which stay internal; None: nothing did.

        Args:
            planned: The plan's claim.
            settings: The plan's.
            touches: All accesses of the plan.
            measured: What the training has handed to :attr:`Job.measured`, if it has.
        """
        return planned, None

    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: S) -> bool:
        """Whether a run can end with a claim other than the planned one, as far as the plan can tell."""
        return stated == planned


@dataclass(frozen=True, kw_only=True)
class FixedNoise:
    """Noise that settings fix.

    Attributes:
        multiplier: σ.
        delta: The δ at which the composition's ε follows from it.
    """

    multiplier: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class Estimation:
    """How an expected privacy loss is estimated, fixed before any record is read.

    Attributes:
        pairs: N, from how many real records; γ is 1/(N + 1).
        features: In what distances are measured.
        artificial: On how many synthetic records.
        seed: Fixes which records these are.
    """

    pairs: int
    features: str
    artificial: int
    seed: int


def settings_of(method: Method[Any, Any], kind: str, given: dict[str, Any]) -> MethodSettings:
    """Read a method's settings for a kind of data.

    Raises:
        SettingError: The method does not take this kind, or a setting is wrong.
    """
    if kind not in method.kinds:
        message, remedy = f"takes no {KINDS[kind].records}", "give --method auto, which chooses one that does"
        raise SettingError(message, field=f"method {method.name}", remedy=remedy)
    types = method.settings_type
    return (types if isinstance(types, type) else types[kind]).read(given)


def unshared_conditions(method: Method[Any, Any], schema: Schema) -> tuple[str, ...]:
    """Return a line for each condition of which nothing says how frequent its values are.

    Args:
        method: What trains.
        schema: Says which conditions have shares.
    """
    if method.knows_shares(schema):
        return ()
    return tuple(
        f"{printable(name)} is a condition without shares, and {method.name} counts none: its values are sampled "
        "equally often, not as often as in the data; declare or learn shares"
        for name in schema.with_role("condition")
        if schema.columns[name].fact("shares") is None
    )


def customary_delta(units: int) -> float:
    """Return a tenth of 1/units, rounded down to one digit, so that what is proposed is never warned of."""
    power = len(str(10 * units - 1))
    return float(f"{10**power // (10 * units)}e-{power}")


def refuse_loose_delta(delta: float, units: int, *, field: str) -> None:
    """Refuse a chance that would allow publishing one unit's record outright.

    Args:
        delta: What was asked for.
        units: The public number of units.
        field: Where it was asked for.

    Raises:
        SettingError: It is 1/units or more.
    """
    if delta >= 1 / units:
        raise SettingError(
            f"{delta:g} is at least 1/units, which allows publishing one unit's record outright",
            field=field,
            remedy=f"give one well below {1 / units:.2g}, such as {customary_delta(units):.0e}",
        )
