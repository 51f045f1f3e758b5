"""The contract of a method: settings, accesses, cost and training.

A method's module imports no torch until :meth:`Method.train` or :meth:`Method.build` is called, so that planning stays
fast. A new method is one folder and one line in :mod:`doublure.methods.registry`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias

from typing_extensions import TypeVar

from doublure.access import Access
from doublure.encode.encoder import Encoder
from doublure.errors import SettingError, printable
from doublure.guarantee import Guarantee, Kind
from doublure.private.noise import source
from doublure.schema import Schema
from doublure.schema.kinds import KINDS
from doublure.schema.rules.rule import list_names
from doublure.training.job import Job, State
from doublure.training.noisy_tables import NoisyTable
from doublure.training.owned import OwnerTasks
from doublure.training.settings import MethodSettings, Work

if TYPE_CHECKING:
    from doublure.networks.array_generator import AnyGenerator
    from doublure.private.bayesian import BayesianAccountant
    from doublure.training.architectures import Critic

Released: TypeAlias = Callable[[], Sequence[NoisyTable]]
"""Reads the noisy tables that a fit bought."""
S = TypeVar("S", bound=MethodSettings, default=MethodSettings)
E = TypeVar("E", bound=Encoder, default=Encoder)


class Method(ABC, Generic[S, E]):
    """One way to train a generator, with settings ``S`` and records encoded by ``E``.

    The default implementations fit a method whose noise the plan calibrates, and which claims what was planned.

    Attributes:
        name: The name in plans and on the command line.
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
        """Return the settings with every None decided, from public facts and from public files that they name."""

    @abstractmethod
    def sample_rate(self, schema: Schema, settings: S) -> float | None:
        """Return q, if the method draws lots."""

    @abstractmethod
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        """Return the accesses of training at this noise, without those that buy facts, which are the plan's."""

    @abstractmethod
    def work(self, schema: Schema, settings: S) -> Work:
        """Return the cost of training."""

    @abstractmethod
    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        """Return warnings to show before the data is read."""

    def limits(self, schema: Schema, settings: S) -> tuple[str, ...]:
        """Return limits of every sample, a sentence without its full stop each: for plans, displays and cards."""
        return ()

    def noise_limits(
        self, schema: Schema, settings: S, touches: tuple[Access, ...], released: Released
    ) -> tuple[str, ...]:
        """Return limits of every sample that a forecast of noise decides, as :meth:`limits` does.

        Args:
            schema: The public facts; after a fit with those that were bought.
            settings: As the plan has decided them.
            touches: The plan's accesses.
            released: Reads the noisy tables that a fit bought; none before it.
        """
        return ()

    def fitted_limits(self, schema: Schema, settings: S, generator: AnyGenerator) -> tuple[str, ...]:
        """Return limits of every sample that the released answers decide, as :meth:`limits` does.

        Args:
            schema: The public facts, with those that were bought.
            settings: As the plan has decided them.
            generator: What was made of the released answers.
        """
        return ()

    def expected_errors(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> ErrorForecast | None:
        """Return the forecast of the errors of counts and tables; None where noise does not decide them alone.

        Args:
            schema: The public facts.
            settings: As the plan has decided them.
            touches: The plan's accesses.
        """
        return None

    def knows_shares(self, schema: Schema) -> bool:
        """Whether the releases include the shares of conditions, which then need not be declared or bought.

        The generator is then a :class:`doublure.networks.steering.ConditionPrior`.
        """
        return False

    def needs_torch(self, schema: Schema, settings: S) -> bool:
        """Whether training computes with torch, which is an optional dependency."""
        return True

    def asks_owners(self, schema: Schema, settings: S) -> bool:
        """Whether all queries of training can be answered by owners of records (docs/federated.md)."""
        return bool(self.work(schema, settings).records_bytes)

    def at_owner(self, encoder: E, settings: S) -> OwnerTasks:
        """Return the computations of an owner of records beside counts.

        Args:
            encoder: The encoder of the resolved schema.
            settings: The settings of the owner's plan.
        """
        return OwnerTasks()

    def ready(self, schema: Schema, settings: S) -> None:
        """Check that everything a fit needs beside the private data is there, before anything is charged.

        Args:
            schema: The private data's schema, as planned.
            settings: With defaults resolved.
        """
        return

    def rehearsed(self, settings: S) -> S | None:
        """Return the settings of a rehearsal without records, before a plan is charged: few steps, the same shapes.

        None: the rehearsal builds the generator without training it, as training needs records.

        Args:
            settings: The plan's.
        """
        return None

    @abstractmethod
    def build(self, encoder: E, settings: S, seed: int) -> AnyGenerator:
        """Return an untrained generator of the right shape."""

    @abstractmethod
    def train(self, job: Job[S, E]) -> AnyGenerator:
        """Train and return the generator to release."""

    def white_box(self, encoder: E, settings: S, kept: State) -> Critic | None:
        """Return the critic in a run's last state, for white-box attacks; None if it has none.

        Raises:
            InputError: The critic's input can no longer be computed from a record.
        """
        return None

    # -- figures of the settings ---------------------------------------------------------------------------------

    def sample_noise(self, settings: S) -> int:
        """Return the standard normal numbers that sampling takes for a record."""
        return 1

    def max_grad_norm(self, settings: S) -> float | None:
        """Return C, if one bound clips all gradients."""
        return None

    def noise_source(self, settings: S) -> str:
        """Return the name of the noise's source in a claim."""
        return source().name

    def estimation(self, settings: S) -> Estimation | None:
        """Return the settings of a later estimate of the expected loss; None without one."""
        return None

    # -- noise and claim -----------------------------------------------------------------------------------------

    def decide_noise(
        self, schema: Schema, settings: S, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> S:
        """Return the settings with the noise that they fix in place of the plan's calibration.

        Args:
            schema: The public facts.
            settings: With defaults resolved.
            learned: The accesses that buy facts.
            epsilon: The requested total, or the ceiling on ε_μ.
            delta: The total δ, or δ_μ.

        Raises:
            SettingError: No amount of noise is enough.
        """
        return settings

    def given_noise(self, settings: S) -> float | None:
        """Return σ if the settings give it in place of ε, which then follows from it; else None."""
        return None

    def fixed_noise(self, settings: S) -> FixedNoise | None:
        """Return noise that the settings fix independently of the claim; None if σ follows from ε, or ε from σ."""
        return None

    def planned_claim(
        self, composed: Guarantee, settings: S, touches: Sequence[Access], *, epsilon: float, delta: float
    ) -> Guarantee:
        """Return a plan's claim.

        Args:
            composed: The (ε, δ) of all accesses composed, of kind dp.
            settings: With all noise decided.
            touches: All accesses.
            epsilon: The requested ε.
            delta: The requested δ.
        """
        return composed

    def forecast(self, planned: Guarantee, settings: S, touches: tuple[Access, ...], schema: Schema) -> tuple[str, ...]:
        """Return further lines of a plan: decisions, and figures that will be measured later."""
        return ()

    def shown_together(
        self, schema: Schema, settings: S, touches: tuple[Access, ...]
    ) -> Mapping[str, tuple[Access, ...]]:
        """Return accesses of which a plan shows one line, by the name of that line; each other has its own."""
        return {}

    def final_claim(
        self,
        planned: Guarantee,
        settings: S,
        touches: tuple[Access, ...],
        measured: BayesianAccountant | None,
    ) -> tuple[Guarantee, dict[str, Any] | None]:
        """Return a finished run's claim, and the internal figures that decided it; None if no figure did.

        Args:
            planned: The plan's claim.
            settings: The plan's settings.
            touches: All accesses of the plan.
            measured: The accountant that training gave to :attr:`Job.measured`, if any.
        """
        return planned, None

    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: S) -> bool:
        """Whether a run can end with a claim other than the planned one, as far as the plan can tell."""
        return stated == planned


class ErrorForecast(Protocol):
    """Forecast of the errors of counts and tables, from public facts alone."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns whose errors are forecast."""

    def spread(self, name: str) -> float:
        """Return the standard deviation of the count of a listed value of a column, in rows."""

    def distance(self, names: Sequence[str]) -> float:
        """Return the expected total variation of a column, or of two columns together, between 0 and 1."""

    @property
    def questions(self) -> tuple[QuestionForecast, ...]:
        """The forecast of each column and pair that the settings put in focus."""


_EFFECTS = (
    (0.032, "well known: even a weak correlation (0.1) keeps more than half"),
    (0.1, "roughly known: a correlation of 0.3 keeps more than half, a weak one does not"),
    (0.18, "hardly known: only a strong correlation (0.5) keeps more than half"),
    (1.0, "lost: even a strong correlation (0.5) loses more than half"),
)
"""Cohen's effects (1988): the total variation from independence of two normal numbers with a correlation of 0.1, 0.3
and 0.5, and what it means that noise takes half of no more."""


@dataclass(frozen=True, kw_only=True)
class QuestionForecast:
    """Forecast of a column or a pair in focus, from public facts alone.

    Attributes:
        columns: Their names, one or two.
        distance: Expected total variation of their table, between 0 and 1.
        margin: How far the count of a cell may be off in 95 of 100 fits, in rows.
        hidden: Total variation from independence of which noise takes half; None of a column, and without pairs.
        refused: Each logistic regression on both columns that is refused after the fit, with the reason, a sentence.
        measured: Columns of the pair that are counted by how far they are from a third one, and that one.
    """

    columns: tuple[str, ...]
    distance: float
    margin: float
    hidden: float | None
    refused: tuple[str, ...] = ()
    measured: Mapping[str, str] = field(default_factory=dict)

    @property
    def known(self) -> str:
        """The judgement in words; empty for a column."""
        if len(self.columns) == 1:
            return ""
        hidden = self.hidden
        if hidden is None:
            return "not counted together, and drawn as independent"
        for name, other in self.measured.items():
            return (
                f"hardly known: {printable(name)} is counted by its gap from {printable(other)} alone; to count it "
                f"itself, write measured_from: {printable(name)} into the at_most of both"
            )
        return next(words for most, words in _EFFECTS if hidden <= most)

    @property
    def words(self) -> str:
        """All of it in words."""
        named, known = " & ".join(map(printable, self.columns)), f"; {self.known}" if self.known else ""
        return (
            f"{named}: expected to be {100 * self.distance:.2g} % of rows off (total variation); the count of a "
            f"cell is within {self.margin:,.0f} rows in 95 of 100 fits{known}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return what ``doublure plan --json`` holds of it."""
        return {**asdict(self), "known": self.known, "words": self.words}


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
    """Settings of an estimate of the expected privacy loss, fixed before any record is read.

    Attributes:
        pairs: N, number of real records; γ is 1/(N + 1).
        features: The features in which distances are measured.
        artificial: Number of synthetic records.
        seed: Fixes the choice of these records.
    """

    pairs: int
    features: str
    artificial: int
    seed: int


def settings_of(method: Method[Any, Any], kind: str, given: dict[str, Any], *, planned: bool = False) -> MethodSettings:
    """Read a method's settings for a kind of data.

    Args:
        method: The method.
        kind: The kind of data.
        given: Settings by name.
        planned: Whether they are a plan file's, which may be of an earlier version.

    Raises:
        SettingError: The method does not take this kind, or a setting is wrong.
    """
    if kind not in method.kinds:
        message, remedy = (
            f"takes no {KINDS[kind].fitted or KINDS[kind].records}",
            "give --method auto, which chooses one that does",
        )
        raise SettingError(message, field=f"method {method.name}", remedy=remedy)
    types = method.settings_type
    own = types if isinstance(types, type) else types[kind]
    return own.of_plan(given) if planned else own.read(given)


def unshared_conditions(method: Method[Any, Any], schema: Schema) -> tuple[str, ...]:
    """Return a line about the conditions whose values' shares are unknown; none where all are known.

    Args:
        method: The method.
        schema: The schema, with the shares that are declared or bought.
    """
    if method.knows_shares(schema):
        return ()
    if not (names := schema.unshared):
        return ()
    are, its = schema.unshared_in_words
    return (
        f"{list_names(names)} {are} without shares, and {method.name} counts none: {its} values are sampled equally "
        "often, not as often as in the data; declare or learn shares",
    )


def customary_delta(units: int) -> float:
    """Return a tenth of 1/units, rounded down to one digit, so that a proposed δ never raises a warning."""
    power = len(str(10 * units - 1))
    return float(f"{10**power // (10 * units)}e-{power}")


def refuse_loose_delta(delta: float, units: int, *, field: str) -> None:
    """Refuse a δ that would allow publishing one unit's record outright.

    Args:
        delta: The requested δ.
        units: The public number of units.
        field: The field that holds it.

    Raises:
        SettingError: δ is 1/units or more.
    """
    if delta >= 1 / units:
        raise SettingError(
            f"{delta:g} is at least 1/units, which allows publishing one unit's record outright",
            field=field,
            remedy=f"give one well below {1 / units:.2g}, such as {customary_delta(units):.0e}",
        )
