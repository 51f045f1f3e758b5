"""Owners as a remote source: rounds of messages, each of which every owner may answer once.

A round sends one question to all participating owners. An answer counts if it belongs to this question of this run (by
a nonce of 128 bits per owner and round), has the same plan and version, and is possible.

Participation is decided before anything is charged and before any data is opened, so that no record decides it. The
number of owners is public and stands on the card; their names are not.

After the charge an owner fails if it refuses, does not answer in time, or sends an impossible answer. A record may be
the cause.

- **An owner of many units ends the run** (:class:`OwnerLost`): answers that came are dropped, no noise is drawn,
  nothing is given out. A sum without it would lack all of its units, where the noise hides one: one record that its
  owner cannot read would move the release by all of them. The run can be resumed once that owner answers again.
- **An owner that is one unit counts for zero**, and the run goes on. The sum is that of a neighbour, the data set
  without this unit: whatever its records do to its answer, it adds at most C, or m records, or nothing.

Rounds, and the owners that missed one, stay in the run folder and are not released.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from typing_extensions import override

from doublure._version import __version__
from doublure.data.tables.source import no_records
from doublure.encode.table_values import TableValues
from doublure.errors import InputError, OwnerLost, SchemaError, printable
from doublure.federated import declared, steps, wire
from doublure.federated.wire import BEGIN, CHARGED, END, HEADER, HELLO
from doublure.methods import registry as methods
from doublure.planning import Plan
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent
from doublure.private.owner_partitions import EmptyRecords, OwnerPartitions
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import Fact, FactRecords
from doublure.run.record_sources import RemoteSource
from doublure.schema import Schema
from doublure.support import files
from doublure.support.messages import Message

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.encode.encoder import Encoder
    from doublure.private.partitions import Partitions
    from doublure.support.tensors import Array

_FEDERATION, _QUESTION = "federation.json", "question.bin"
_NONCE_BYTES = 16
_BACK = "go on with --resume when that owner is back and answers alike"
_ANOTHER = "answers another question"


class Transport(Protocol):
    """Transport of messages to numbered nodes, which reply in any order or not at all."""

    def nodes(self) -> Iterable[int]:
        """Return the numbers of the connected nodes."""

    def send(self, messages: Mapping[int, Message]) -> Iterator[tuple[int, Message | None]]:
        """Send a message to each node; yield nodes with their replies, None for an unreadable one."""


@dataclass(frozen=True, kw_only=True)
class QuestionRound:
    """One question to all owners.

    Attributes:
        asked: The question, in words.
        binding: Whether the run needs every answer: between the charge and the end.
        missed: Reasons by failed owner.
    """

    asked: str
    binding: bool
    missed: dict[str, str] = field(default_factory=dict)


class Clients(RemoteSource):
    """Owners behind a transport of messages.

    Args:
        post: Carries messages.
        plan: The plan of the run; every owner has the same.
        one_unit: Whether each owner is one unit; a lot's owners are then chosen by coins that are tossed here.
        said: Called with a line for each owner that is left out or counts for zero, and the reason; each once.
        asked: Called with a line for each round, before it is sent.
        invited: The public number of owners, where not all need to take part.

    Attributes:
        rounds: Rounds so far, with the owners that missed them.
        bytes: Bytes of arrays sent to owners and received from them; without steps for which coins were tossed, as
            these would reveal the sizes of lots.
        at_work: Whether a run has begun that asks them: charged, and its folder taken.
    """

    def __init__(
        self,
        post: Transport,
        plan: Plan,
        *,
        one_unit: bool = False,
        said: Callable[[str], None] = lambda _: None,
        asked: Callable[[str], None] = lambda _: None,
        invited: int = 0,
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
        self._follow = asked
        self._need = plan.schema.federated.need
        self._of = invited
        self._taking_part: list[str] | None = None
        self._charged: set[int] = set()
        self._ended = False
        self._digest = wire.plan_digest(plan)
        self._run = secrets.token_hex(_NONCE_BYTES)
        self._names: dict[int, str] = {}
        self._units: dict[str, int] = {}
        self._strangers: set[int] = set()
        self._told: set[tuple[str, str]] = set()
        self._encoder: Encoder | None = None
        self.rounds: list[QuestionRound] = []
        self.bytes = [0, 0]
        self.at_work = False
        self._bytes_a_step = [0, 0]
        self._internal: Path | None = None

    @property
    def names(self) -> list[str]:
        """Names of the participating owners."""
        return sorted(self._names.values())

    # -- before anything is charged ------------------------------------------------------------------------------

    @override
    def check(self, schema: Schema) -> None:
        """Ask which owners are ready, and then each of them whether its data has the plan's form.

        Owners open their data for the second question alone. So no record decides participation, and a fault in an
        owner's data refuses the run, however many owners are needed.

        Raises:
            InputError: Fewer owners are ready than are needed, or an owner's data has another form; nothing was
                charged anywhere. Or the run has begun, and one of its owners is missing.
        """
        nodes = list(self._post.nodes())
        if not nodes:
            raise InputError("are none", field="clients", remedy="start at least one")
        self._names = {node: f"node {node}" for node in nodes}
        found = dict(self._round(HELLO, "who is there"))
        self._names = _told_apart({node: printable(str(said.words.get("name"))) for node, said in found.items()})
        remedy = _BACK
        if self._taking_part is None:
            remedy = "put it right, or leave it out; nothing ran"
            self._of = max(self._of, len(nodes))
            self._refuse_too_few(remedy)
            self._taking_part = self.names
        else:
            self._refuse_absent(self._taking_part)
        self._strangers |= {*nodes} - {*self._names}
        self._units = self._bounds({name: found[node].words.get(wire.UNITS) for node, name in self._names.items()})
        for _ in self._round(HEADER, "the data's form"):
            pass
        if self.rounds[-1].missed:
            raise self._by_name(remedy)

    def _refuse_too_few(self, remedy: str) -> None:
        """Refuse a run for which fewer owners are ready than are needed; else leave out the others.

        Raises:
            InputError: Fewer are ready.
        """
        ready, missed = len(self._names), self.rounds[-1].missed
        if ready >= (self._need or self._of):
            for owner, why in missed.items():
                self._said(f"{owner} {why}; it is left out, and {ready} of {self._of} owners take part")
        elif self._need is None and missed:
            raise self._by_name(remedy)
        else:
            why = "".join(f"; {owner} {why}" for owner, why in list(missed.items())[:1])
            needed = "all are needed" if self._need is None else f"the schema needs {self._need} (federated.need)"
            remedy = "start the others, or plan with fewer; nothing ran"
            raise InputError(f"{ready} of {self._of} are ready, and {needed}{why}", field="clients", remedy=remedy)

    def _refuse_absent(self, taking_part: Collection[str]) -> None:
        """Go on with the owners of the run's beginning alone.

        Raises:
            InputError: One of them is missing, and is more than one unit.
        """
        self._names = {node: name for node, name in self._names.items() if name in taking_part}
        absent = sorted({*taking_part} - {*self._names.values()})
        if absent and not self._one_unit:
            why = self.rounds[-1].missed.get(absent[0], "is not there")
            raise InputError(f"{why}, and the run began with it", field=f"client {absent[0]}", remedy=_BACK)

    def _by_name(self, remedy: str) -> InputError:
        """Return the refusal that names an owner that failed in the last round."""
        missed = self.rounds[-1].missed
        who, why = next(iter(missed.items()))
        more = f" (and {len(missed) - 1} more)" if len(missed) > 1 else ""
        return InputError(f"{why}{more}", field=f"client {who}", remedy=remedy)

    def _bounds(self, told: Mapping[str, object]) -> dict[str, int]:
        """Return the number of units that bounds each owner's answers; required from all where lengths are shared."""
        if self._one_unit:
            return dict.fromkeys(told, 1)
        lengths = self._plan.guarantee.kind == "bayesian-dp"
        return declared.unit_bounds(told, self._plan.schema, required=lengths)

    # -- a run that is charged -----------------------------------------------------------------------------------

    def go_on(self, internal: Path) -> None:
        """Use the identity of a run that has begun, which owners have paid for already."""
        self._internal = internal
        with contextlib.suppress(InputError, KeyError):
            kept = files.read_json(internal / _FEDERATION, "federation", dict)
            self._run, self._taking_part, self._of = str(kept["run"]), [*map(str, kept["owners"])], int(kept["of"])

    @override
    def begin(self, internal: Path) -> None:
        self.at_work, self._internal = True, internal
        kept = {"run": self._run, "owners": self._taking_part, "of": self._of}
        files.write_json(internal / _FEDERATION, kept, mode=0o600)

    @property
    @override
    def public(self) -> dict[str, Any]:
        return {"owners": {"answered": len(self._taking_part or ()), "of": self._of}}

    @override
    def read(self) -> None:
        """Have every owner charge its own ledger and read its records.

        Raises:
            OwnerLost: One cannot; where each is one unit, it counts for zero from now on.
            InputError: None can.
        """
        self._charged = {*self._names}
        there = {node for node, _ in self._round(BEGIN, "begin")}
        if not there:
            raise InputError("none has begun", field="clients", remedy="see what each was refused for")
        self._names = {node: name for node, name in self._names.items() if node in there}

    @override
    def release_charges(self) -> bool:
        self._ended, closed = True, set()
        with contextlib.suppress(Exception):  # the run ends already: an owner out of reach stays charged
            for node, said in self._round(END, "end", {"done": False}):
                if said.words.get(CHARGED) is False:
                    closed.add(node)
        return closed >= self._charged

    @override
    def facts(self) -> Partitions[FactRecords]:
        return self._owners(self._nobody(0))

    @override
    def encoded(self, encoder: Encoder, path: Path | None) -> Clients:
        self._encoder = encoder
        if self._plan.schema.questions:
            self._tell(encoder.schema.to_yaml())
        return self

    @property
    def fingerprint(self) -> str:
        """Empty: it cannot be known here."""
        return ""

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Any]:
        """Return the owners' compact records."""
        encoder = self._encoder
        if encoder is None:
            raise TypeError("no owner was told the schema")
        counted = isinstance(encoder, TableValues) and not self._needs_torch
        nobody = self._nobody(encoder.width) if counted else steps.empty_records(encoder)
        return self._owners(nobody, check)

    @property
    def _needs_torch(self) -> bool:
        plan = self._plan
        return methods.method(plan.method).needs_torch(plan.schema, plan.settings)

    def _owners(self, nobody: Any, check: Callable[[], None] = lambda: None) -> OwnerPartitions[Any]:
        return OwnerPartitions(
            self._ask,
            nobody,
            check=check,
            refused=self._failed,
            one_unit=self._one_unit,
            owners=lambda: self.names,
            units=lambda: self._units,
        )

    def end(self, *, done: bool) -> None:
        """Let every owner close its charge; an owner out of reach keeps the full charge."""
        if not self.at_work or self._ended:  # no owner is charged for this run, or it has ended
            return
        with contextlib.suppress(InputError):
            for _ in self._round(END, "end", {"done": done}):
                pass

    def summary(self) -> dict[str, Any]:
        """Return the run folder's record of the owners."""
        return {
            "clients": self.names,
            "units": {} if self._one_unit else self._units,
            "rounds": [{"asked": each.asked, "missed": each.missed} for each in self.rounds],
            "bytes_sent": self.bytes[0],
            "bytes_received": self.bytes[1],
        } | self._known_lots()

    def _known_lots(self) -> dict[str, Any]:
        """Return the price without sampling, where lots are drawn here, and the size of a step's messages.

        The total number of messages would reveal the sizes of lots.
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

    def _ask(
        self, query: Any, access: Access, owners: Collection[str] | None, view: Any
    ) -> Iterator[tuple[str, Message]]:
        """Send a question to all owners, or to those that the coins chose."""
        if isinstance(query, Fact):
            ask, question = "fact", self._encode_fact(query)
        elif isinstance(query, Counts):
            ask, question = "counts", wire.encode_counts(query)
        else:
            ask, question = steps.encode_question(query, view, chosen=owners is not None)
        if ask == steps.STEP:
            question = self._pending(question, self._plan.touches.index(access))
            self._bytes_a_step = [
                sum(array.nbytes for array in question.arrays.values()),
                sum(p.numel() for p in query.critic.parameters()) * 4,
            ]
        chosen = None if owners is None else [node for node, name in self._names.items() if name in owners]
        words = {**question.words, "access": self._plan.touches.index(access)}
        for node, said in self._round(ask, access.purpose, words, question.arrays, chosen):
            yield self._names[node], said

    def _pending(self, question: Message, access: int) -> Message:
        """Return the question of a step as it was first sent: each owner answers that one alone, and alike.

        It is kept until the next one. Networks that are a rounding off when the run goes on make no other question.
        """
        if self._internal is None:
            return question
        path, own = self._internal / _QUESTION, {"access": access, "step": question.words.get("step")}
        with contextlib.suppress(FileNotFoundError, InputError):
            kept = Message.from_bytes(path.read_bytes())
            if all(kept.words.get(key) == value for key, value in own.items()):
                return kept
        asked = Message({**question.words, **own}, question.arrays)
        content = asked.to_bytes()
        files.write_atomic(path, lambda file: file.write(content), mode=0o600)
        return asked

    def _encode_fact(self, query: Fact) -> Message:
        asked = query.question
        learned = any(each.column == asked.column and each.fact == "values" for each in self._plan.schema.questions)
        known = query.counted_values if learned else ()
        values = {"values": [str(each) for each in known]} if known else {}
        return Message({"path": asked.path, **values})

    # -- rounds --------------------------------------------------------------------------------------------------

    def _welcome_back(self) -> None:
        """Give an owner whose node was restarted its name back, as the node has a new number."""
        there = set(self._post.nodes())
        gone = {name: node for node, name in self._names.items() if node not in there}
        newcomers = there - {*self._names} - self._strangers
        if not gone or not newcomers:
            return
        known, self._names = self._names, {node: f"node {node}" for node in newcomers}
        found = {str(said.words.get("name")): node for node, said in self._round(HELLO, "who has come back")}
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
        arrays: Mapping[str, Array] | None = None,
        chosen: Collection[int] | None = None,
    ) -> Iterator[tuple[int, Message]]:
        """Send a question to all nodes, or to some; yield nodes with their valid answers.

        A message from a node that was not asked, or has answered already, is ignored.

        Raises:
            OwnerLost: An owner of many units has failed, and the run needs it.
        """
        if ask != HELLO:
            self._welcome_back()
        this = QuestionRound(asked=asked, binding=ask not in (HELLO, HEADER, END))
        self.rounds.append(this)
        self._follow(f"round {len(self.rounds)}: {asked}")
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
        messages = {node: Message({**common, "nonce": nonce}, arrays or {}) for node, nonce in own.items()}
        if chosen is None:
            self.bytes[0] += sum(array.nbytes for array in (arrays or {}).values()) * len(messages)
        for node, said in self._post.send(messages):
            nonce = own.pop(node, None)
            if nonce is None:
                self._tell_once(self._names.get(node, f"node {node}"), "answers what it was not asked, or again")
                continue
            fault = self._fault(said, nonce)
            if fault is None and said is not None:
                if chosen is None:
                    self.bytes[1] += sum(array.nbytes for array in said.arrays.values())
                yield node, said
            else:
                name = said.words.get("name") if said is not None and ask == HELLO else None
                self._failed(printable(name) if isinstance(name, str) else self._names[node], fault or _ANOTHER)
        for node in own:
            self._failed(self._names[node], "did not answer")

    def _fault(self, said: Message | None, nonce: str) -> str | None:
        """Return why a reply is no answer to the question, or None."""
        if said is None:
            return "sent something unreadable"
        if said.words.get("version") != wire.VERSION:
            return "speaks another version"
        if said.words.get("nonce") != nonce:
            return _ANOTHER
        refused = said.words.get("refused")
        if refused is not None:
            return f"refused: {printable(str(refused))}"
        if said.words.get("plan") != self._digest:
            return "has another plan"
        return None

    def _failed(self, owner: str, why: str) -> None:
        """Record that an owner has failed; end the run if it needs this owner of many units.

        Raises:
            OwnerLost: The run needs it.
        """
        this = self.rounds[-1]
        this.missed.setdefault(owner, why)
        if this.binding and not self._one_unit:
            raise OwnerLost(f"{owner} {why} ({this.asked})", remedy=_BACK)
        if this.binding:
            self._tell_once(owner, why, f"; it counts for zero in each such round, first: {this.asked}")

    def _tell_once(self, owner: str, why: str, more: str = "") -> None:
        if (owner, why) not in self._told:
            self._told.add((owner, why))
            self._said(f"{owner} {why}{more}")

    def _nobody(self, parts: int) -> EmptyRecords:
        schema = self._plan.schema
        columns = {name: column for name, column in schema.columns.items() if column.modelled}
        return EmptyRecords(parts, no_records(columns, schema.misfit))


def _told_apart(names: Mapping[int, str]) -> dict[int, str]:
    """Return unique names of nodes, with a node's number where two have the same name.

    If an owner's name equals another one's with its number, all get their numbers.
    """
    counts = Counter(names.values())
    found = {node: f"{name} ({node})" if counts[name] > 1 else name for node, name in names.items()}
    return found if len({*found.values()}) == len(found) else {n: f"{name} ({n})" for n, name in names.items()}
