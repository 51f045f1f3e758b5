"""Record and replay: the production code is run on a table, then on a neighbour with the private outputs frozen.

The technique of arXiv 2602.17454. On the first table every noisy output is kept; on the second the code computes its
own, they are compared, and the kept ones are handed on. What a reader of the artefacts could see must then be equal,
bit for bit, and what was about to be noised may differ by the sensitivity that the noise was made for, and no more.

Randomness that the guarantee counts on is drawn by *key*: a unit is in a lot, and meets the same generated row, in both
tables or in neither. Each check has planted mutants: edits of the production source that it has to notice.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from critic_steps import critic_steps
from planting import plant

from doublure import planning as plans
from doublure.data.opening import Source
from doublure.data.tables.opening import open_table
from doublure.encode.table import TableEncoder
from doublure.errors import DoublureError, LedgerError
from doublure.ledger import Ledger
from doublure.methods.dpgan.method import METHOD as DPGAN
from doublure.methods.dpgan.settings import DpganSettings
from doublure.methods.statistics.tables import posterior
from doublure.methods.statistics.tables.posterior import ColumnPosterior
from doublure.planning import Plan
from doublure.planning.planner import learned_facts
from doublure.private import facts, whole_noise
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.kept_answers import AnswersInMemory, KeptAnswer, Place
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries.lot_gradients import CriticGradients, CriticSettings, Partner
from doublure.private.records import PrivateRecords
from doublure.private.sampling import PoissonSampler
from doublure.run import fitting, running
from doublure.schema import Schema
from doublure.support.progress import SilentProgress
from doublure.training import gan_loop as adversarial
from doublure.training.job import NullWorkspace

PUBLIC = """
doublure: 1
kind: table
units: 24
columns:
  age: {type: integer, bounds: [0, 100], missing: true}
  pay: {type: real, bounds: [0, 1000], missing: false}
  job: {type: category, values: [cook, nurse], other: Other, missing: false}
  out: {type: category, values: ["no", "yes"], missing: false, roles: [condition], shares: {"no": 0.8, "yes": 0.2}}
"""
BOUGHT = """
doublure: 1
kind: table
units: {learn: 1.0, magnitude: 24}
columns:
  age: {type: integer, bounds: {learn: 1.0}, missing: {learn: 1.0}}
  pay: {type: real, bounds: {learn: 1.0}, missing: false}
  job: {type: category, values: {learn: 1.0}, other: Other, missing: false}
  out: {type: category, values: ["no", "yes"], missing: false, roles: [condition], shares: {learn: 1.0}}
"""
SEVERAL = PUBLIC.replace("units: 24", "unit: {name: person, id: who, max_records: 3}\nunits: 24").replace(
    "columns:", "columns:\n  who: {type: id}"
)
TINY = {
    "steps": 6, "n_critic": 2, "checkpoints": 3, "width": 8, "depth": 1, "critic_width": 8, "critic_depth": 1,
    "noise_width": 4, "generator_batch": 8, "bins": 4, "max_grad_norm": 0.1, "lot_size": 8,
}  # fmt: skip

FEW = {"components": 4, "fit_steps": 5, "groups": 2, "structure": "tree"}  # of ``statistics``, with pairs

# One unit that is unlike all others: every value that is known to get round somebody's clipping or encoding.
ODD_RECORDS = {
    "extreme": {"age": 50, "pay": 3.4e38, "job": "cook", "out": "yes"},
    "most negative": {"age": -(2**40), "pay": -1.7e308, "job": "nurse", "out": "no"},
    "missing": {"age": None, "pay": 5e-324, "job": "cook", "out": "no"},
    "new category": {"age": 100, "pay": 1000.0, "job": "astronaut of Kiruna", "out": "yes"},
    "duplicate": {"age": 31, "pay": 31.0, "job": "nurse", "out": "no"},
}


def people(units: int = 24, records: int = 1) -> pd.DataFrame:
    """Return an ordinary private table; ``who`` is the unit's key."""
    draw = np.random.default_rng(5)
    who = np.repeat(np.arange(units), records)
    size = len(who)
    return pd.DataFrame(
        {
            "who": [f"p{key}" for key in who],
            "age": draw.integers(18, 90, size).astype(float),
            "pay": draw.random(size) * 900,
            "job": draw.choice(["cook", "nurse", "clown"], size),
            "out": draw.choice(["no", "yes"], size),
        }
    )


def with_unit(frame: pd.DataFrame, record: dict[str, object], records: int = 1, place: int = 3) -> pd.DataFrame:
    """Return the neighbour that has one unit more, in the midst of the others."""
    more = pd.DataFrame([{"who": "one more"} | record] * records)
    return pd.concat([frame[:place], more, frame[place:]], ignore_index=True)


def without_unit(frame: pd.DataFrame, who: str) -> pd.DataFrame:
    """Return the neighbour that lacks one unit."""
    return frame[frame["who"] != who].reset_index(drop=True)


@dataclass
class Trace:
    """What a run did.

    Attributes:
        order: Public acts in their order: authorise, lot, noise.
        queries: Each step's result without noise, times the public divisor.
        allowed: The sensitivity that each step's noise was made for.
        outputs: What each step gave out.
        answers: What each question was answered.
        public: Everything a reader of the artefacts could see.
        settings: The critic's settings.
        events: What pays for its steps.
    """

    order: list[str] = field(default_factory=list)
    queries: list[torch.Tensor] = field(default_factory=list)
    allowed: list[float] = field(default_factory=list)
    outputs: list[torch.Tensor] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)
    public: dict[str, object] = field(default_factory=dict)
    settings: list[CriticSettings] = field(default_factory=list)
    events: list[GaussianEvent] = field(default_factory=list)

    def count(self, act: str) -> int:
        return self.order.count(act)


class Primitives:
    """Stands in for the primitives' randomness, by key and step, and keeps what goes in and out."""

    def __init__(self, frame: pd.DataFrame, most: int, trace: Trace, frozen: Trace | None) -> None:
        self.keys = list(dict.fromkeys(frame["who"]))
        counts = frame["who"].value_counts()
        self.records = {key: min(most, int(counts[key])) for key in self.keys}
        self.trace, self.frozen = trace, frozen
        self.lot: list[str] = []
        self.step = 0

    def _draw(self, *what: object) -> np.random.Generator:
        return np.random.default_rng(list(repr(what).encode()))

    def _by_record(self, what: str, width: int) -> torch.Tensor:
        rows = [
            self._draw(what, self.step, key, i).normal(size=width) for key in self.lot for i in range(self.records[key])
        ]
        return torch.tensor(np.array(rows).reshape(-1, width), dtype=torch.float32)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        take, noise = CriticSteps.gradient, adversarial.Adversaries._noise

        def lot(sampler: PoissonSampler) -> np.ndarray:
            self.trace.order.append("lot")
            inside = [self._draw("lot", self.step, key).random() < sampler.sample_rate for key in self.keys]
            self.lot = [key for key, chosen in zip(self.keys, inside, strict=True) if chosen]
            return np.flatnonzero(inside)

        def normal(source: object, size: int, std: float) -> ScaledNoise:
            self.trace.order.append("noise")
            self.trace.allowed.append(std)
            return ScaledNoise(np.zeros(size, dtype=np.float32), std)

        def mix(query: object, size: int) -> torch.Tensor:
            return self._by_record("mix", 1)[:, 0].sigmoid()

        def paired(self_: adversarial.Adversaries, size: int, stream: object) -> torch.Tensor:
            if stream is not self_._paired:
                return noise(self_, size, stream)
            rows = self._by_record("paired", self_._settings.noise_width)
            assert len(rows) == size  # each unit in the lot with all of its records, and at most max_records of them
            return rows

        def gradient(step: CriticSteps, critic: torch.nn.Module, partner: Partner) -> torch.Tensor:
            if not self.trace.settings:
                self.trace.settings.append(step.settings)
                self.trace.events.append(step.event)
            number = len(self.trace.outputs)
            self.step = number
            before = len(self.trace.allowed)
            result = take(step, critic, partner)
            std = self.trace.allowed[before] if len(self.trace.allowed) > before else 0.0
            self.trace.allowed[before:] = [std / step.event.noise_multiplier]
            self.trace.queries.append(result.double() * step.settings.expected_units)
            noisy = torch.from_numpy(self._draw("noise", number).normal(size=len(result))).float()
            made = result + noisy * std / step.settings.expected_units
            assert self.frozen is None or self.frozen.outputs[number].shape == made.shape
            self.trace.outputs.append(made if self.frozen is None else self.frozen.outputs[number])
            return self.trace.outputs[-1]

        patch.setattr(PoissonSampler, "lot", lot)
        patch.setattr(OsKeyedNoise, "normal", normal)
        patch.setattr(CriticGradients, "_mix", mix)
        patch.setattr(CriticSteps, "gradient", gradient)
        patch.setattr(adversarial.Adversaries, "_noise", paired)
        freeze_answers(patch, self.trace, self.frozen)


def freeze_answers(patch: pytest.MonkeyPatch, trace: Trace, frozen: Trace | None) -> None:
    """Keep what each question is answered, or answer it as it was."""
    learn = facts.learn

    def answered(*arguments: object, **named: object) -> object:
        answer = learn(*arguments, **named)
        trace.answers.append(answer if frozen is None else frozen.answers[len(trace.answers)])
        return trace.answers[-1]

    patch.setattr(facts, "learn", answered)


class Answers(AnswersInMemory):
    """Noisy answers, as they are kept."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    @contextlib.contextmanager
    def room(self, place: Place, size: int) -> Iterator[Callable[[KeptAnswer], None]]:
        del size
        yield lambda answer: self._trace.public["answers"].append((place, answer.asked))


class Memory(NullWorkspace):
    """A run folder and a reservation that keep what they are given, and nothing on disk."""

    def __init__(self, trace: Trace, steps: int, taken: int = 0) -> None:
        self.trace, self.steps, self.authorised = trace, steps, taken
        self.schema = None
        self.path = "run"
        self.drawn: tuple[str, ...] = ()
        self.answers = Answers(trace)
        trace.public |= {"kept": [], "answers": [], "log": [], "authorised": [], "drawn": []}

    def save(self, step: int, tensors: dict[str, torch.Tensor]) -> None:
        self.trace.public["kept"].append((step, tensors))

    def load(self) -> None:
        return None

    def refuse_other_records(self, fingerprint: str) -> None:
        del fingerprint  # nothing is resumed

    def log(self, line: dict[str, object]) -> None:
        self.trace.public["log"].append(line)

    @property
    def executed(self) -> None:
        return None  # nothing is resumed

    def save_executed(self, executed: list[dict[str, object]]) -> None:
        self.trace.public["executed"] = executed

    def save_schema(self, schema: Schema) -> None:
        self.trace.public["schema"] = schema.to_yaml()

    def mark_of(self, number: int) -> str:
        return f"fact {number}"

    def noise_drawn(self, what: str) -> None:
        self.trace.public["drawn"].append(what)

    def advance(self, through: int) -> None:
        self.trace.order.append("authorise")
        if not self.authorised < through <= self.steps:
            raise LedgerError("cannot be authorised")
        self.authorised = through
        self.trace.public["authorised"].append(through)


class OneWeight(torch.nn.Module):
    """A critic of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(1, 1)

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        return self.body(x).squeeze(1)


class Lab:
    """Runs the production code in miniature, and plants mutants in it."""

    PUBLIC, BOUGHT, SEVERAL, TINY, ODD_RECORDS = PUBLIC, BOUGHT, SEVERAL, TINY, ODD_RECORDS
    REFUSED, OneWeight = LedgerError, OneWeight
    people, with_unit, without_unit = staticmethod(people), staticmethod(with_unit), staticmethod(without_unit)

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    @staticmethod
    def settings(**changes: object) -> DpganSettings:
        """Return the settings that :meth:`train` uses."""
        return DpganSettings(**(TINY | changes))

    def train(
        self, frame: pd.DataFrame, schema: str = PUBLIC, *, like: Trace | None = None, seed: int = 1, taken: int = 0,
        real: bool = False, **settings: object,
    ) -> Trace:  # fmt: skip
        """Learn, resolve, encode and train as ``fit`` does, and return what happened.

        Args:
            frame: The private table, with ``who``.
            schema: The schema's text.
            like: A trace whose noisy outputs are used instead of this run's own.
            seed: The public seed.
            taken: Steps that an earlier session has spent.
            real: Leave the primitives as they are.
            settings: Changes to the settings.
        """
        facts_of = Schema.parse(schema)
        own = self.settings(**settings)
        trace = Trace()
        memory = Memory(trace, own.steps, taken)
        bought, training = learned_facts(facts_of, 0.01), DPGAN.accesses(facts_of, own, 1.5)
        plan = SimpleNamespace(
            schema=facts_of, settings=own, method="dpgan",
            guarantee=SimpleNamespace(kind="dp", delta_mu=None),
            steps=own.steps, training=training,
            sample_rate=min(1.0, own.lot_size / facts_of.public_units),
            learned=bought, answered_facts=bought, answered=(*bought, *training),
        )  # fmt: skip
        run = running.FitRun(memory, plan, memory, seed)
        with self._patch.context() as patch:
            if not real:
                Primitives(frame, facts_of.unit.max_records, trace, like).install(patch)
            table = open_table(frame).load(facts_of, at_least=0)
            resolved = run._resolve(table, SilentProgress())
            generator = run._train(table, resolved, "cpu", SilentProgress())
        trace.public |= {"generator": generator.state_dict(), "resolved": resolved.to_yaml(), "steps": own.steps}
        return trace

    @staticmethod
    def counting_plan(schema: str = PUBLIC, **settings: object) -> Plan:
        """Return a plan of ``statistics``: four columns, three of them counted within ``out``.

        Its noise is so large that it will not leave a table as it was, or come twice, by chance.
        """
        return plans.plan(
            Schema.parse(schema), method="statistics", epsilon=0.1, delta=1e-3, accountant="rdp", **(FEW | settings)
        )

    def count(
        self, frame: pd.DataFrame, schema: str = PUBLIC, *, like: Trace | None = None, seed: int = 1, **settings: object
    ) -> Trace:
        """Run ``statistics`` as ``fit`` does, and return what happened.

        A query is a table before its noise, and what is allowed is the noise's parameter σ.

        Args:
            frame: The private table, with ``who``.
            schema: The schema's text.
            like: A trace whose noisy tables are used instead of this run's own.
            seed: The public seed.
            settings: Changes to the settings.
        """
        return self.counted(open_table(frame), self.counting_plan(schema, **settings), like=like, seed=seed)

    def counted(self, opened: Source, plan: Plan, *, like: Trace | None = None, seed: int = 1) -> Trace:
        """Run ``statistics`` on what was opened, of whatever kind, as :meth:`count` does on a table."""
        trace = Trace()
        memory = Memory(trace, plan.steps)
        noisy = whole_noise.gaussian

        def drawn(counts: np.ndarray, *, scale: float) -> ScaledNoise:
            trace.order.append("noise")
            trace.queries.append(torch.from_numpy(counts).double().flatten())
            trace.allowed.append(scale)
            if like is None:
                trace.outputs.append(torch.from_numpy(noisy(counts, scale=scale).values))
            else:
                trace.outputs.append(like.outputs[len(trace.outputs)])
            assert trace.outputs[-1].shape == np.shape(counts)  # the same is asked of every neighbour
            return ScaledNoise(trace.outputs[-1].numpy(), float(scale))

        with self._patch.context() as patch:
            patch.setattr(whole_noise, "gaussian", drawn)
            freeze_answers(patch, trace, like)
            run = running.FitRun(memory, plan, memory, seed)
            loaded = opened.load(plan.schema, at_least=0)
            resolved = run._resolve(loaded, SilentProgress())
            generator = run._train(loaded, resolved, "cpu", SilentProgress())
        trace.public |= {"generator": generator.state_dict(), "noise_multiplier": plan.noise_multiplier}
        trace.public["resolved"] = resolved.to_yaml()
        return trace

    def fit(
        self,
        frame: pd.DataFrame,
        plan: Plan,
        folder: Path,
        *,
        like: Trace | None = None,
        real: bool = False,
        **arguments: object,
    ) -> Trace:
        """Run ``doublure.fit`` on a table with a ledger of its own; the run is in ``folder / "run"``."""
        folder.mkdir(parents=True, exist_ok=True)
        if "ledger" not in arguments:
            arguments["ledger"] = Ledger.create(folder / "ledger", dataset="people", epsilon=100.0, delta=0.5)
        trace = Trace()
        with self._patch.context() as patch:
            if not real:
                Primitives(frame, plan.schema.unit.max_records, trace, like).install(patch)
            fitting.fit(frame, plan, out=folder / "run", **({"seed": 1} | arguments))
        return trace

    def mechanism(self, body: torch.Tensor, settings: dict[str, object], **changes: object) -> CriticSteps:
        """Return production steps over rows ``(N, D)``; pass ``unit`` where a unit has several."""
        unit = np.asarray(changes.pop("unit", np.arange(len(body))), dtype=np.int64)
        n_units = int(unit.max()) + 1 if len(unit) else 0
        given = {"mixing": torch.Generator().manual_seed(0), "allow_test_noise": True} | changes
        return critic_steps(PrivateRecords(body, unit, n_units, lambda rows: (rows, None)), settings, **given)

    def plant(self, owner: object, name: str, *edits: tuple[str, str]) -> None:
        """Edit one production function; an edit that finds nothing to edit fails the test."""
        plant(self._patch, owner, name, *edits)

    @staticmethod
    def caught() -> contextlib.AbstractContextManager[object]:
        """Return a context in which a check has to fail."""
        return pytest.raises(AssertionError)

    @staticmethod
    def refusal(kind: type[DoublureError], act: Callable[[], object]) -> DoublureError:
        """Return the error that an act is refused with; letting it pass, or another error, fails the check."""
        try:
            act()
        except kind as error:
            return error
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} instead of a refusal") from error
        raise AssertionError("it was let pass")

    # -- the two comparisons ------------------------------------------------------------------------------------------

    @staticmethod
    def assert_same_public(one: Trace, other: Trace) -> None:
        """Everything that can be seen is equal, bit for bit."""
        assert one.order == other.order
        assert one.settings == other.settings
        assert one.events == other.events
        assert one.allowed == other.allowed
        assert one.public.keys() == other.public.keys()
        # Names alone: where all is shown, as on CI, pytest compares a network's weights line by line for minutes.
        differing = [name for name in one.public if _plain(one.public[name]) != _plain(other.public[name])]
        assert not differing

    @staticmethod
    def assert_within_sensitivity(one: Trace, other: Trace) -> float:
        """Before the noise, no step differs by more than its noise was made for; return the largest share of it."""
        worst = 0.0
        for mine, theirs, allowed in zip(one.queries, other.queries, one.allowed, strict=True):
            rounding = 2.0**-23 * float(mine.norm() + theirs.norm())
            moved = float((mine - theirs).norm())
            assert np.isfinite(moved)
            assert moved <= allowed * (1 + 1e-6) + rounding
            worst = max(worst, moved / allowed)
        return worst

    @staticmethod
    def price(one: Trace, other: Trace) -> float:
        """Return how far all queries are apart together, in units of their noise: what ε is made of."""
        pairs = zip(one.queries, other.queries, one.allowed, strict=True)
        return sum(float((mine - theirs).norm() / scale) ** 2 for mine, theirs, scale in pairs) ** 0.5

    @staticmethod
    def encoder(resolved: str) -> TableEncoder:
        """Return the encoder of a resolved schema's text."""
        return TableEncoder(Schema.parse(resolved), bins=4)


def _plain(value: object) -> object:
    """Return tensors as what can be compared bit for bit."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.shape, value.contiguous().numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value


@pytest.fixture(scope="package", autouse=True)
def _each_posterior_is_found_once() -> Iterator[None]:
    """A neighbour meets the noisy tables of a run again: what the same posterior holds after its fit is remembered.

    All that a posterior knows is in its attributes. So one that has met anything else is fitted.
    """
    known: dict[bytes, bytes] = {}
    fit = ColumnPosterior.fit

    def remembered(self: ColumnPosterior) -> None:
        key = hashlib.sha256(pickle.dumps((vars(self), posterior._STILL, fit.__code__.co_code))).digest()
        if key in known:
            vars(self).update(pickle.loads(known[key]))  # noqa: S301  -- of this process
        else:
            fit(self)
            known[key] = pickle.dumps(vars(self))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnPosterior, "fit", remembered)
        yield


@pytest.fixture(scope="session")
def plan() -> Plan:
    """A plan that buys every kind of fact and takes six noisy steps."""
    return plans.plan(Schema.parse(BOUGHT), method="dpgan", epsilon=9.0, delta=1e-3, accountant="rdp", **TINY)


@pytest.fixture(scope="session")
def declared_plan() -> Plan:
    """A plan in which every fact is declared."""
    return plans.plan(Schema.parse(PUBLIC), method="dpgan", epsilon=3.0, delta=1e-3, accountant="rdp", **TINY)


@pytest.fixture(scope="session")
def counting_plan() -> Plan:
    """A plan that counts, in which every fact is declared."""
    return Lab.counting_plan()


@pytest.fixture(scope="module")
def watching() -> Iterator[Lab]:
    """A lab for what several tests of a module look at; nothing is planted in it."""
    with pytest.MonkeyPatch.context() as patch:
        yield Lab(patch)


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    torch.set_num_threads(1)
    return Lab(monkeypatch)
