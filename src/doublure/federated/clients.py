"""Owners as a place that a run asks: rounds of Flower messages, each of which every owner may answer once.

A round puts one question to all owners who were there at the beginning. An answer counts if it is to this question of
this run (a nonce of 128 bits, one an owner and round), under the same plan and version, and a possible one; every other
is refused by name, and its owner counts for zero in this round. So does one who says nothing. The run goes on: what is
missing costs utility, and never privacy, because the noise is the plan's whoever answers.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from doublure._version import __version__
from doublure.data.tables.source import no_records
from doublure.encode.table_values import TableValues
from doublure.errors import InputError, SchemaError, printable
from doublure.federated import declared, steps, wire
from doublure.federated.wire import Said
from doublure.methods import registry as methods
from doublure.planning import Plan
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.private.owners import Answers, Heard, Nobody
from doublure.private.owners import Post as Asking
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import Cells, Fact
from doublure.run.elsewhere import AskedRecords, Elsewhere
from doublure.schema import Schema
from doublure.support import files

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.encode.encoder import Encoder
    from doublure.private.partitions import Partitions

_FEDERATION = "federation.json"
_NONCE_BYTES = 16
_HELLO = "hello"
_ANOTHER = "answers another question"


class Post(Protocol):
    """What carries messages: nodes by number, and what each says back, in any order, or nothing."""

    def nodes(self) -> Iterable[int]:
        """Return who is there."""

    def sent(self, messages: Mapping[int, Said]) -> Iterator[tuple[int, Said | None]]:
        """Send a message to each node; yield who answers and what, None where it is unreadable."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One question to all owners.

    Attributes:
        asked: What, in words.
        missed: Who counted for zero -> why.
    """

    asked: str
    missed: dict[str, str] = field(default_factory=dict)


class Clients(Elsewhere, AskedRecords):
    """Owners behind a post.

    Args:
        post: Carries messages.
        plan: What is run; every owner has the same.
        one_unit: Whether each owner is one unit; a lot's owners are then chosen by coins that are tossed here.
        said: Told one line at a time who was refused or has missed a round, and why; each once.

    Attributes:
        rounds: What was asked until now, and who missed it.
        bytes: How much was sent to owners, and how much came back, as arrays; without steps for which coins were
            tossed, as that would tell how large lots were.
        at_work: Whether a run has begun that asks them: charged, and its folder taken.
    """

    def __init__(
        self, post: Post, plan: Plan, *, one_unit: bool = False, said: Callable[[str], None] = lambda _: None
    ) -> None:
        if plan.schema.federated is None:
            raise SchemaError(
                "is left out, so that the claim does not say with how many owners a unit is",
                field="federated",
                remedy="add federated: {max_silos: 1} to the schema, and plan again",
            )
        self._post = post
        self._plan = plan
        self._one_unit = one_unit
        self._said = said
        self._digest = wire.digest_of(plan)
        self._run = secrets.token_hex(_NONCE_BYTES)
        self._names: dict[int, str] = {}
        self._units: dict[str, int] = {}
        self._strangers: set[int] = set()
        self._told: set[tuple[str, str]] = set()
        self._encoder: Encoder | None = None
        self.rounds: list[Round] = []
        self.bytes = [0, 0]
        self.at_work = False
        self._bytes_a_step = [0, 0]

    @property
    def names(self) -> list[str]:
        """Who takes part."""
        return sorted(self._names.values())

    # -- before anything is charged ------------------------------------------------------------------------------

    def check(self, schema: Schema) -> None:
        """Ask everybody whether plan, version, data and ledger are as planned.

        Raises:
            InputError: Nobody is there, or somebody refuses; nothing was charged anywhere.
        """
        nodes = list(self._post.nodes())
        if not nodes:
            raise InputError("are none", field="clients", remedy="start at least one")
        self._names = {node: f"node {node}" for node in nodes}
        found = dict(self._round(_HELLO, "who is there"))
        names = {node: printable(str(said.words.get("name"))) for node, said in found.items()}
        several = {name for name in names.values() if [*names.values()].count(name) > 1}
        if missed := self.rounds[-1].missed:
            who, why = next(iter(missed.items()))
            more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
            raise InputError(f"{why}{more}", field=f"client {who}", remedy="put it right, or leave it out; nothing ran")
        self._names = {node: f"{name} ({node})" if name in several else name for node, name in names.items()}
        self._units = self._bounds({name: found[node].words.get(wire.UNITS) for node, name in self._names.items()})

    def _bounds(self, told: Mapping[str, object]) -> dict[str, int]:
        """Return how many units bound what each owner sends; each has to say where lengths count by their shares."""
        if self._one_unit:
            return dict.fromkeys(told, 1)
        lengths = self._plan.guarantee.kind == "bayesian-dp"
        return declared.bounds_of(told, self._plan.schema, everybody=lengths)

    # -- a run that is charged -----------------------------------------------------------------------------------

    def go_on(self, internal: Path) -> None:
        """Ask in the name of a run that has begun, from the first question on: owners have paid for it already."""
        with contextlib.suppress(InputError):
            kept = files.read_json(internal / _FEDERATION, "federation", dict).get("run")
            if isinstance(kept, str):
                self._run = kept

    def begun(self, internal: Path) -> AskedRecords:
        """Return the owners' records, and keep the run's name for who goes on with it."""
        self.at_work = True
        files.write_json(internal / _FEDERATION, {"run": self._run}, mode=0o600)
        return self

    def read(self) -> None:
        """Have every owner charge its own ledger and read its records; who cannot counts for zero from now on."""
        there = {node for node, _ in self._round("begin", "begin")}
        if not there:
            raise InputError("none has begun", field="clients", remedy="see what each was refused for")
        self._names = {node: name for node, name in self._names.items() if node in there}

    def facts(self) -> Partitions[Cells]:
        """Return the owners' records as facts look at them."""
        return self._answers(self._fact, self._nobody(0))

    def encoded(self, encoder: Encoder, path: Path | None) -> Clients:
        """Tell everybody what was learned; what is counted then is counted by this encoder's codes."""
        self._encoder = encoder
        self._tell(encoder.schema.to_yaml())
        return self

    @property
    def fingerprint(self) -> str:
        """Nobody can know it."""
        return ""

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Any]:
        """Return the owners' compact records."""
        encoder = self._encoder
        if encoder is None:
            raise TypeError("nobody was told the schema")

        def asked(query: Any, access: Access, owners: Collection[str] | None, view: Any) -> Iterator[Heard]:
            check()
            return (self._counts if isinstance(query, Counts) else self._computed)(query, access, owners, view)

        counted = isinstance(encoder, TableValues) and not self._needs_torch
        nobody = self._nobody(encoder.width) if counted else steps.records_of_nobody(encoder)
        return self._answers(asked, nobody)

    @property
    def _needs_torch(self) -> bool:
        plan = self._plan
        return methods.method(plan.method).needs_torch(plan.schema, plan.settings)

    def _answers(self, post: Asking, nobody: Any) -> Answers[Any]:
        return Answers(
            post,
            nobody,
            refused=self._refused,
            one_unit=self._one_unit,
            owners=lambda: self.names,
            units=lambda: self._units,
        )

    def end(self, *, done: bool) -> None:
        """Let every owner close its charge; who does not hear of it keeps the full charge."""
        if not self.at_work:  # nobody has been charged for this run by now, or a run is there that has ended
            return
        with contextlib.suppress(InputError):
            for _ in self._round("end", "end", {"done": done}):
                pass

    def told(self) -> dict[str, Any]:
        """Return what the run folder says of the owners."""
        return {
            "clients": self.names,
            "units": {} if self._one_unit else self._units,
            "rounds": [{"asked": each.asked, "missed": each.missed} for each in self.rounds],
            "bytes_sent": self.bytes[0],
            "bytes_received": self.bytes[1],
        } | self._known_lots()

    def _known_lots(self) -> dict[str, Any]:
        """Return the price without sampling, where lots are drawn here, and the size of a step's messages.

        How many were asked in all would tell how large the lots were.
        """
        plan = self._plan
        events = [access.event for access in plan.touches if access.event is not None]
        drawn = [event for event in events if isinstance(event, GaussianEvent)]
        if not (self._one_unit and drawn and plan.delta is not None):
            return {}
        known = [replace(event, sample_rate=1.0) if isinstance(event, GaussianEvent) else event for event in events]
        accountant: accounting.Accountant = "rdp" if plan.accountant == "rdp" else "pld"
        return {
            "epsilon_where_lots_are_known": accounting.epsilon_of(known, plan.delta, accountant=accountant),
            "bytes_a_step": self._bytes_a_step,
        }

    # -- questions -----------------------------------------------------------------------------------------------

    def _tell(self, schema: str) -> None:
        for _ in self._round("schema", "the learned facts", {"schema": schema}):
            pass

    def _fact(self, query: Any, access: Access, *_: Any) -> Iterator[Heard]:
        if not isinstance(query, Fact):
            raise TypeError(f"{type(query).__name__} is not asked of owners")
        domain = getattr(query, "domain", None)
        path = query.question.path
        words: dict[str, Any] = {"path": path}
        if domain is not None and self._learns(query.question.column):
            words["values"] = [str(each) for each in domain]
        return self._totals("fact", access, Said(words, {}))

    def _learns(self, column: str | None) -> bool:
        """Whether a column's values are learned, too."""
        return any(each.column == column and each.fact == "values" for each in self._plan.schema.questions)

    def _counts(self, query: Any, access: Access, *_: Any) -> Iterator[Heard]:
        return self._totals("counts", access, wire.counts_said(query))

    def _computed(self, query: Any, access: Access, owners: Collection[str] | None, view: Any) -> Iterator[Heard]:
        """Ask everybody for a sum, or for a lot's gradients; or those whom coins have chosen for their unit's."""
        ask, question = steps.question_of(query, view, chosen=owners is not None)
        if ask == steps.STEP:
            self._bytes_a_step = [
                sum(array.nbytes for array in question.arrays.values()),
                sum(p.numel() for p in query.critic.parameters()) * 4,
            ]
        chosen = None if owners is None else [node for node, name in self._names.items() if name in owners]
        return self._totals(ask, access, question, chosen)

    def _totals(
        self, ask: str, access: Access, question: Said, chosen: Collection[int] | None = None
    ) -> Iterator[Heard]:
        words = {**question.words, "access": self._plan.touches.index(access)}
        for node, said in self._round(ask, access.purpose, words, question.arrays, chosen):
            try:
                total = wire.total_heard(said)
            except InputError as error:
                self._refused(self._names[node], error.message)
            else:
                yield Heard(self._names[node], total, said.arrays.get(wire.LENGTHS))

    # -- rounds --------------------------------------------------------------------------------------------------

    def _welcome_back(self) -> None:
        """Let an owner whose node was started again go on under its name: a new node has a new number."""
        there = set(self._post.nodes())
        gone = {name: node for node, name in self._names.items() if node not in there}
        newcomers = there - {*self._names} - self._strangers
        if not gone or not newcomers:
            return
        known, self._names = self._names, {node: f"node {node}" for node in newcomers}
        found = {str(said.words.get("name")): node for node, said in self._round(_HELLO, "who has come back")}
        self._names = known
        for name in gone.keys() & found.keys():
            del self._names[gone[name]]
            self._names[found[name]] = name
        self._strangers |= newcomers - {*self._names}

    def _round(
        self,
        ask: str,
        asked: str,
        words: Mapping[str, Any] | None = None,
        arrays: wire.Arrays | None = None,
        chosen: Collection[int] | None = None,
    ) -> Iterator[tuple[int, Said]]:
        """Put a question to everybody, or to some; yield whose answer is to this question, and what it is."""
        if ask != _HELLO:
            self._welcome_back()
        this = Round(asked=asked)
        self.rounds.append(this)
        asked_nodes = self._names if chosen is None else [node for node in chosen if node in self._names]
        own = {node: secrets.token_hex(_NONCE_BYTES) for node in asked_nodes}
        common = {
            **(words or {}),
            "ask": ask,
            "version": wire.VERSION,
            "doublure": __version__,
            "plan": self._digest,
            "run": self._run,
        }
        messages = {node: Said({**common, "nonce": nonce}, arrays or {}) for node, nonce in own.items()}
        if chosen is None:
            self.bytes[0] += sum(array.nbytes for array in (arrays or {}).values()) * len(messages)
        for node, said in self._post.sent(messages):
            if node not in self._names:
                self._refused(f"node {node}", "was not asked")
                continue
            fault = self._fault(said, own.pop(node, None))
            if fault is None and said is not None:
                if chosen is None:
                    self.bytes[1] += sum(array.nbytes for array in said.arrays.values())
                yield node, said
            else:
                name = said.words.get("name") if said is not None and ask == _HELLO else None
                self._refused(printable(name) if isinstance(name, str) else self._names[node], fault or _ANOTHER)
        for node in own:
            self._refused(self._names[node], "did not answer")

    def _fault(self, said: Said | None, nonce: str | None) -> str | None:
        """Return why something is no answer to what was asked."""
        if said is None:
            return "sent something unreadable"
        if said.words.get("version") != wire.VERSION:
            return "speaks another version"
        if nonce is None or said.words.get("nonce") != nonce:
            return _ANOTHER
        refused = said.words.get("refused")
        if refused is not None:
            return f"refused: {printable(str(refused))}"
        if said.words.get("plan") != self._digest:
            return "has another plan"
        return None

    def _refused(self, owner: str, why: str) -> None:
        this = self.rounds[-1]
        this.missed.setdefault(owner, why)
        if not this.asked.startswith("who ") and (owner, why) not in self._told:
            self._told.add((owner, why))
            self._said(f"{owner} {why}; it counts for zero in each such round, first: {this.asked}")

    def _nobody(self, parts: int) -> Nobody:
        schema = self._plan.schema
        columns = {name: column for name, column in schema.columns.items() if column.nature != "id"}
        return Nobody(parts, no_records(columns, schema.misfit))
