"""Rehearsal of a fit without records, which refuses a plan with incompatible choices before it is charged.

The untrained generator is built in the shapes that the plan gives. If a fit without records is quick, it is made as
well: facts are learned from no cell, every release is asked of no record, and the noise is made up. The built generator
has to load the state of the trained one, as when a run's folder is read.

No private record is opened, and any record is refused, as the noise protects no one. It is fast, and seeded, so that a
plan is refused always or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.encode.choice import encoder_for
from doublure.errors import DoublureError, SettingError, printable
from doublure.methods import registry as methods
from doublure.networks.sampling import load_state
from doublure.planning.machine import estimate_seconds
from doublure.private import facts
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, PureEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import source as noise_source
from doublure.private.records import PrivateRecords
from doublure.support.tensors import as_arrays
from doublure.training.job import Job, encoded_records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from doublure.access import Access
    from doublure.encode.encoder import Encoder
    from doublure.methods.method import Method
    from doublure.planning import Plan
    from doublure.private.queries.query import Query
    from doublure.schema import ResolvedSchema
    from doublure.training.job import State
    from doublure.training.settings import MethodSettings

_SECONDS, _SHARE = 10.0, 0.5
"""Limits on the forecast of a rehearsal's time: seconds, or a share of the fit's. The forecast is of
exact noise, which takes most of it and is not drawn: over all of examples/schemas, and wide tables and long series, a
rehearsal took a tenth of its fit at most, or a second and a half."""

_DEFECT = "report it as a defect of the method; other settings or another method may do"


def rehearse(plan: Plan, *, device: str = "cpu") -> None:
    """Refuse a plan whose choices do not go together, before it is charged.

    Args:
        plan: The plan to be fitted.
        device: Device to compute on.

    Raises:
        SettingError: Its generator cannot be built, or the trained one has another shape.
    """
    chosen = methods.method(plan.method)
    try:
        schema = _learned_of_nobody(plan)
        encoder = encoder_for(schema, plan.settings.encoding)
        built = chosen.build(encoder, plan.settings, 0)
        settings = _quick(chosen, plan)
        trained = None if settings is None else _trained(chosen, plan, settings, encoder, device)
    except DoublureError:
        raise
    except MemoryError:
        remedy = "choose smaller networks or fewer values, or fit on a larger machine"
        raise _refused(plan, "makes a generator that memory does not hold", remedy) from None
    except Exception as error:  # whatever it is, it would have come after the budget was spent
        said = printable(f"{type(error).__name__}: {error}")
        raise _refused(plan, f"cannot be fitted as planned ({said})", _DEFECT) from error
    if trained is not None:
        try:
            load_state(built, as_arrays(trained.state_dict()))
        except RuntimeError as error:
            raise _refused(plan, "trains a generator of another shape than it builds", _DEFECT) from error


def _refused(plan: Plan, message: str, remedy: str) -> SettingError:
    return SettingError(f"{message}; nothing was charged", field=f"method {plan.method}", remedy=remedy)


def _quick(chosen: Method, plan: Plan) -> MethodSettings | None:
    """Return the settings of a fit without records; None if there is no such fit, or it takes too long."""
    if plan.guarantee.epsilon is None:
        return None  # nothing is charged, and a generator without noise cannot learn without records
    settings = chosen.rehearsed(plan.settings)
    if settings is None:
        return None
    nobody = plan.schema.model_copy(update={"units": 1})
    longest = max(_SECONDS, _SHARE * plan.seconds_estimate)
    return settings if estimate_seconds(chosen.work(nobody, settings)) <= longest else None


def _trained(chosen: Method, plan: Plan, settings: MethodSettings, encoder: Encoder, device: str) -> Any:
    """Return the generator that a fit without records trains."""
    noise = plan.noise_multiplier or 1.0
    accesses = chosen.accesses(plan.schema, settings, noise)
    compact = encoder.compact(encoder.decode(np.zeros((0, encoder.width), dtype=np.float32)))
    job = Job(
        encoder=encoder,
        records=encoded_records(encoder, compact, np.zeros(0, dtype=np.int64), 0, device),
        settings=settings,
        accesses=accesses,
        mechanism=RehearsalMechanism(accesses),
        sample_rate=plan.sample_rate or 1.0,
        units=encoder.schema.public_units,
        authorise=lambda step: None,
        check_stop=lambda: None,
        checkpoints=_NoCheckpoints(),
        device=device,
        delta_mu=plan.guarantee.delta_mu,
    )
    return chosen.train(job)


def _learned_of_nobody(plan: Plan) -> ResolvedSchema:
    """Return the schema with the facts that would be learned without cells."""
    priced = plan.answered_facts
    mechanism, learned = RehearsalMechanism(priced), dict[str, Any]()
    for access, question in zip(priced, plan.schema.questions, strict=True):
        learned[question.path] = facts.learn(
            question, _EmptyCells(), plan.schema, mechanism=mechanism, access=access, learned=learned
        )
    return plan.schema.resolve(learned)


class _EmptyCells:
    """No records, in the form that facts read."""

    n_units = most_records = 0

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return a column without cells."""
        return pd.Series(dtype=object)


class _NoCheckpoints:
    """Keeps no state: a rehearsal is not resumed."""

    def save(self, step: int, state: State) -> None:
        """Keep nothing."""

    def load(self) -> State | None:
        """Return nothing."""
        return None


class RehearsalMechanism(Mechanism):
    """Answers without records, with made-up noise of the real noise's scale. It protects no one.

    Args:
        accesses: As a plan would price them.
    """

    def __init__(self, accesses: Iterable[Access]) -> None:
        super().__init__(accesses, noise=noise_source(), authorise=lambda access, step: None)
        self._made_up = np.random.default_rng(0)

    @override
    def release(self, query: Query[Any], access: Access, records: Any, *, keep: bool = True) -> Any:
        """Return the answer of no records, with noise.

        Raises:
            TypeError: There is a record.
        """
        if not isinstance(records, (PrivateRecords, _EmptyCells)) or records.n_units or records.most_records:
            raise TypeError("a rehearsal has no records")
        self._taken[access] = self.taken(access) + 1
        query.refuse_unfit(records)
        return self._noised_for_nobody(query, access, records)

    def _noised_for_nobody(self, query: Query[Any], access: Access, nobody: Any) -> Any:
        event = access.event
        answer = query.answer(nobody, sample_rate=getattr(event, "sample_rate", 1.0))
        total = answer.total
        if isinstance(event, ApproximateEvent):
            return {}  # nothing passes its threshold
        if isinstance(event, PureEvent):
            noise = self._made_up.laplace(0, answer.sensitivity.l1 / event.epsilon, np.shape(total))
        else:
            noise = self._made_up.normal(0, self.deviation(access, answer.sensitivity), np.shape(total))
        whole = isinstance(event, (PureEvent, DiscreteGaussianEvent))
        return np.rint(total + noise).astype(np.int64) if whole else (total + noise).astype(np.float32)
