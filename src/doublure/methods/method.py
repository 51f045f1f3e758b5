"""What a method is: its settings, what it touches, what it costs, and how it trains.

A method's module imports no torch until :meth:`Method.train` or :meth:`Method.build` is called, so that a plan stays
quick. A new method is one file and one line in :mod:`doublure.methods.registry`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from doublure.access import Access
from doublure.errors import SettingError
from doublure.guarantee import Guarantee, Kind
from doublure.private.noise import SourceName
from doublure.schema import ResolvedSchema, Schema
from doublure.support.progress import Progress, Silent

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor, nn

    from doublure.encode.encoder import Encoder
    from doublure.private.bayesian import BayesianAccountant
    from doublure.private.mechanism import Mechanism
    from doublure.private.records import PrivateRecords

LearningRate: TypeAlias = Annotated[float, Field(gt=0, le=10)]
"""Larger ones have no use, and the largest leave nothing that is finite: refused before anything is charged."""

_WORDS = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be one of {expected}",
    "finite_number": "must be a finite number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text",
    "multiple_of": "must be a multiple of {multiple_of}",
    "tuple_type": "must be a list",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "model_type": "is filled in by the plan; leave it out",
}


def _worded(error: Mapping[str, Any]) -> str:
    """Return what pydantic found, in the words that the rest of doublure uses."""
    if error["type"] in _WORDS:
        return _WORDS[error["type"]].format(**error.get("ctx", {}))
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


class MethodSettings(BaseModel):
    """A method's own settings. ``None`` means: chosen by the plan from public facts."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def read(cls, given: dict[str, Any]) -> Self:
        """Check settings given by name.

        Raises:
            SettingError: A name is unknown or a value is out of range.
        """
        for name, value in given.items():
            form = cls.model_fields[name].annotation if name in cls.model_fields else bool
            if isinstance(value, bool) and bool not in (form, *get_args(form)):  # pydantic would read true as 1
                raise SettingError("must not be true or false", field=name, remedy="see docs/methods.md")
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(part) for part in first["loc"]) or "settings"
            if first["type"] == "extra_forbidden":
                known = ", ".join(sorted(cls.model_fields))
                raise SettingError(
                    "is not a setting of this method", field=name, remedy=f"use one of: {known}"
                ) from None
            raise SettingError(_worded(first), field=name, remedy="see docs/methods.md") from None

    @property
    def stream(self) -> SourceName:
        """What real-valued noise and other secret numbers are drawn from."""
        return "os-keyed"

    @property
    def only_sampling(self) -> frozenset[str]:
        """Names of the settings that nothing before sampling asks, so that they may be changed afterwards."""
        return frozenset()

    def sampling_with(self, changed: Mapping[str, Any]) -> Self:
        """Return the settings with some that only sampling asks changed.

        Raises:
            SettingError: A name is another one, or a value is out of range.
        """
        for name in sorted(set(changed) - self.only_sampling):
            remedy = (
                f"change {' or '.join(sorted(self.only_sampling))}, or fit again" if self.only_sampling else "fit again"
            )
            raise SettingError("is no setting that can be changed when sampling", field=name, remedy=remedy)
        return self.read({**dict(self), **changed})

    def at_once(self, step: int, steps: int) -> int:
        """Return how many noisy steps are authorised together, from this one on: what a crash can lose.

        Args:
            step: Counted from 1.
            steps: T.
        """
        del step
        every: int = getattr(self, "checkpoint_every", steps)
        return every

    def shown(self) -> dict[str, Any]:
        """Return the settings as a plan is explained with."""
        return self.model_dump()

    def ready(self, schema: Schema) -> None:
        """Look whether all that a fit needs beside the private data is there, before anything is charged.

        Args:
            schema: Of the private data, as planned.
        """

    @property
    def public_sources(self) -> tuple[str, ...]:
        """What public data or networks the understudy is made of, one line each; a card repeats them."""
        return ()

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a claim rests on that these settings bring in."""
        return ()

    @property
    def excluded(self) -> tuple[str, ...]:
        """What a claim does not cover for the same reason."""
        return ()


@dataclass(frozen=True, kw_only=True)
class Work:
    """How much a fit computes and holds, from public facts.

    Attributes:
        flops: Floating-point operations of all steps.
        steps: Noisy steps.
        memory_bytes: Peak memory beyond the libraries.
        free_steps: Steps of networks that learn from what was released before; they cost time and no budget.
    """

    flops: float
    steps: int
    memory_bytes: int
    free_steps: int = 0


class Checkpoints(Protocol):
    """Keeps the state of a run that may be cut off."""

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Replace the kept state."""

    def load(self) -> dict[str, Tensor] | None:
        """Return the kept state, if there is one."""


class Workspace(Protocol):
    """Keeps private numbers that take long to compute within a run's internal folder, until the run is finished."""

    def keep(self, name: str, tensors: dict[str, Tensor], key: str) -> None:
        """Replace what is kept under a name.

        Args:
            name: A short word.
            tensors: Private.
            key: What they follow from; other work never finds them.
        """

    def kept(self, name: str, key: str) -> dict[str, Tensor] | None:
        """Return what is kept under a name, if it follows from the same."""

    def forget(self, name: str) -> None:
        """Remove it."""


class Forgetful:
    """A workspace that keeps nothing."""

    def keep(self, name: str, tensors: dict[str, Tensor], key: str) -> None:
        """Keep nothing."""

    def kept(self, name: str, key: str) -> dict[str, Tensor] | None:
        """Return nothing."""
        return None

    def forget(self, name: str) -> None:
        """There is nothing to remove."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything a method needs to train, and nothing it could use to look at the data another way.

    Attributes:
        encoder: Records <-> tensors.
        records: The private records, for the mechanism's hands only.
        settings: The method's settings, settled.
        accesses: What the plan has priced, in order: σ, q and T come from here and from nowhere else.
        mechanism: What answers queries, and pays for them by these accesses.
        units: N, public or bought: the divisor and nothing else.
        authorise: Returns once the given step is written down, where no access pays for it.
        check_stop: Goes on, or raises Interrupted where a signal has come; called where nothing drawn would be lost.
        taken: Noisy steps already spent by an interrupted run.
        session: Names the reservation's session, in ASCII; every resumption begins another one.
        take_up_undrawn: Whether an earlier session's word that it was stopped before its noise may be counted on; that
            it was is then written down, and it never may again.
        sample_rate: Of lots that protect no one; a private lot's is its event's.
        checkpoints: Where state is kept.
        workspace: Where private numbers are kept until the run is finished.
        progress: Who listens.
        seed: Public: initial weights and the generator's noise, never the privacy noise.
        device: Where to compute.
        log: Takes one public line of figures at a time.
        delta_mu: δ_μ, where a Bayesian claim is planned.
        measured: Takes what was estimated for it, once, before the end.
    """

    encoder: Encoder
    records: PrivateRecords
    settings: MethodSettings
    accesses: tuple[Access, ...]
    mechanism: Mechanism
    units: int
    authorise: Callable[[int], None]
    check_stop: Callable[[], None]
    checkpoints: Checkpoints
    taken: int = 0
    session: str = ""
    take_up_undrawn: Callable[[str], bool] = lambda _: False
    sample_rate: float = 1.0
    workspace: Workspace = field(default_factory=Forgetful)
    progress: Progress = field(default_factory=Silent)
    seed: int = 0
    device: str = "cpu"
    log: Callable[[dict[str, Any]], None] = lambda _: None
    delta_mu: float | None = None
    measured: Callable[[BayesianAccountant], None] = lambda _: None

    @property
    def private(self) -> bool:
        """Whether all that is touched is protected."""
        return bool(self.accesses) and all(access.event is not None for access in self.accesses)

    def stage(self, name: str, *, after: int) -> Job:
        """Return the job as one of several stages sees it: with its own noisy steps, and a state of its own.

        Args:
            name: Under which the stage's state is kept.
            after: How many noisy steps the plan has for the stages before it.
        """
        return replace(
            self,
            authorise=lambda step: self.authorise(after + step),
            checkpoints=StageCheckpoints(self.checkpoints, name, after),
            taken=max(0, self.taken - after),
        )


class Counting:
    """Tells how far a computation on every record is, by the public number of units.

    Shares of how many records there are would tell how many.

    Args:
        job: The run.
        rows: Records in a batch, whose places are drawn (:meth:`doublure.private.records.PrivateRecords.mapped`).
    """

    def __init__(self, job: Job, rows: int) -> None:
        self.job = job
        each = job.units / rows
        self._planned = math.ceil(each + math.sqrt(2 * each * math.log(rows)))  # the fullest place decides

    def load(self, shape: tuple[int, int]) -> Tensor | None:
        """Return nothing: nothing is kept."""
        return None

    def save(self, rows: Tensor, batches: int, *, last: bool) -> None:
        """Count the batches that are finished."""
        units = self.job.units
        self.job.progress.at(units if last else units * min(batches, self._planned) // self._planned)


class StageCheckpoints:
    """One stage's part of a run's state; what other stages have kept stays beside it.

    Args:
        whole: The run's.
        name: The stage's.
        after: How many noisy steps the plan has for the stages before it.
    """

    def __init__(self, whole: Checkpoints, name: str, after: int) -> None:
        self._whole = whole
        self._prefix = f"{name}/"
        self._after = after
        kept = whole.load() or {}
        self._others = {key: value for key, value in kept.items() if not key.startswith(self._prefix)}

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Replace the stage's state."""
        own = {self._prefix + key: value for key, value in tensors.items()}
        self._whole.save(self._after + step, self._others | own)

    def load(self) -> dict[str, Tensor] | None:
        """Return the stage's state, if there is one."""
        kept = self._whole.load() or {}
        own = {key.removeprefix(self._prefix): value for key, value in kept.items() if key.startswith(self._prefix)}
        return own or None


class Method(Protocol):
    """One way to train a generator.

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

    def settle(self, schema: Schema, settings: MethodSettings) -> MethodSettings:
        """Return the settings with every None decided from public facts."""

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Return q, if the method draws lots."""

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Return what training touches, at this noise; learned facts are the plan's own accesses."""

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Return what the user should know before the data is read."""

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator of the right shape."""

    def train(self, job: Job) -> nn.Module:
        """Train and return the generator to release."""

    # -- figures of the settings ---------------------------------------------------------------------------------

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many standard normal numbers a sample takes for a record."""
        return 1

    def max_grad_norm(self, settings: MethodSettings) -> float | None:
        """Return C, where one bound clips all gradients."""
        return None

    def noise_source(self, settings: MethodSettings) -> str:
        """Return what a claim names as the source of its noise, where that is not exact by itself."""
        return settings.stream

    def estimation(self, settings: MethodSettings) -> Estimation | None:
        """Return how the expected loss is estimated afterwards, if it is."""
        return None

    # -- noise and claim -----------------------------------------------------------------------------------------

    def decide_noise(
        self, schema: Schema, settings: MethodSettings, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> MethodSettings:
        """Return the settings with the noise decided that they fix, and the plan does not calibrate.

        Args:
            schema: The public facts.
            settings: Settled.
            learned: The accesses that buy facts.
            epsilon: The total that was asked for, or the ceiling on ε_μ.
            delta: The total δ, or δ_μ.

        Raises:
            SettingError: No noise is enough.
        """
        return settings

    def fixed_noise(self, settings: MethodSettings) -> FixedNoise | None:
        """Return the noise that the settings fix; None: the plan calibrates it to the ε that was asked for."""
        return None

    def planned_claim(
        self, composed: Guarantee, settings: MethodSettings, *, epsilon: float, delta: float
    ) -> Guarantee:
        """Return what a plan claims.

        Args:
            composed: The (ε, δ) that everything composes to, of kind dp.
            settings: With all noise decided.
            epsilon: What was asked for.
            delta: What was asked for.
        """
        return composed

    def forecast(self, planned: Guarantee, settings: MethodSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
        """Return what a plan says, line by line, of figures that are measured afterwards."""
        return ()

    def final_claim(
        self,
        planned: Guarantee,
        settings: MethodSettings,
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

    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: MethodSettings) -> bool:
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


def settings_of(method: Method, kind: str, given: dict[str, Any]) -> MethodSettings:
    """Read a method's settings for a kind of data.

    Raises:
        SettingError: The method does not take this kind, or a setting is wrong.
    """
    if kind not in method.kinds:
        raise SettingError(f"does not take kind {kind}", field=f"method {method.name}", remedy="choose another method")
    types = method.settings_type
    return (types if isinstance(types, type) else types[kind]).read(given)


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
            remedy=f"give one well below {1 / units:.2g}, such as {0.1 / units:.0e}",
        )


def encoded_records(
    encoder: Encoder, compact: Tensor, unit: npt.NDArray[np.int64], n_units: int, device: str = "cpu"
) -> PrivateRecords:
    """Return records that an encoder has made compact, and expands lot by lot.

    Args:
        encoder: Its settings are the method's.
        compact: ``(N, P)``.
        unit: ``(N,)`` int64, each record's unit, 0 … n_units - 1.
        n_units: How many units there are.
        device: Where lots are expanded.
    """
    from doublure.private.records import PrivateRecords

    return PrivateRecords(compact, unit, n_units, lambda rows: encoder.split(encoder.expand(rows)), device)


def encoder_for(schema: ResolvedSchema, settings: MethodSettings) -> Encoder:
    """Return the encoder of the schema's kind, as a method's settings ask for it."""
    if schema.kind == "images":
        from doublure.encode.image import ImageEncoder

        return ImageEncoder(schema)
    if schema.kind == "series":
        curve = getattr(settings, "curve", 1.0)
        if getattr(settings, "numerics", "scaled") == "bins":
            from doublure.encode.series_codes import SeriesCodes

            return SeriesCodes(schema, bins=getattr(settings, "bins", 128), curve=curve)
        from doublure.encode.series import SeriesEncoder

        return SeriesEncoder(schema, curve=curve)
    from doublure.encode.table import TableEncoder

    return TableEncoder(schema, numerics=getattr(settings, "numerics", "bins"), bins=getattr(settings, "bins", 32))
