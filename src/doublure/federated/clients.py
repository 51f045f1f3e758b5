"""Owners as a place that a run asks: rounds of Flower messages, each of which every owner may answer once.

A round puts one question to all owners who were there at the beginning. An answer counts if it is to this question of
this run (a nonce of 128 bits, one an owner and round), under the same plan and version, and a possible one; every other
is refused by name, and its owner counts for zero in this round. So does one who says nothing. The run goes on: what is
missing costs utility, and never privacy, because the noise is the plan's whoever answers.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from doublure._version import __version__
from doublure.data.tables.source import no_records
from doublure.encode.table_values import TableValues
from doublure.errors import InputError, SchemaError, printable
from doublure.federated import wire
from doublure.federated.wire import Said
from doublure.planning import Plan
from doublure.private.owners import Answers, Nobody
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import Cells, Fact
from doublure.run.elsewhere import AskedRecords, Elsewhere
from doublure.schema import ResolvedSchema, Schema
from doublure.support import files

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.encode.encoder import Encoder
    from doublure.private.partitions import Partitions
    from doublure.private.queries.counts import Countable

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
        one_unit: Whether each owner is one unit.
        said: Told one line at a time who was refused or has missed a round, and why.

    Attributes:
        rounds: What was asked until now, and who missed it.
        bytes: How much was sent to owners, and how much came back, as arrays.
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
        self._strangers: set[int] = set()
        self._values: dict[str, list[str]] = {}
        self.rounds: list[Round] = []
        self.bytes = [0, 0]
        self.at_work = False

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

    # -- a run that is charged -----------------------------------------------------------------------------------

    def begun(self, internal: Path) -> AskedRecords:
        """Return the owners' records; a run that goes on is the one that began."""
        self.at_work = True
        path = internal / _FEDERATION
        with contextlib.suppress(InputError):
            kept = files.read_json(path, "federation", dict).get("run")
            if isinstance(kept, str):
                self._run = kept
        files.write_json(path, {"run": self._run}, mode=0o600)
        return self

    def read(self) -> None:
        """Have every owner charge its own ledger and read its records; who cannot counts for zero from now on."""
        there = {node for node, _ in self._round("begin", "begin")}
        if not there:
            raise InputError("none has begun", field="clients", remedy="see what each was refused for")
        self._names = {node: name for node, name in self._names.items() if node in there}

    def facts(self) -> Partitions[Cells]:
        """Return the owners' records as facts look at them."""
        answers: Answers[Cells] = Answers(self._fact, self._nobody(0), refused=self._refused, one_unit=self._one_unit)
        return answers

    def encoded(self, encoder: Encoder, path: Path | None) -> Clients:
        """Tell everybody what was learned; what is counted then is counted by this encoder's codes."""
        if not isinstance(encoder, TableValues):
            raise TypeError("only whole numbers are counted by owners")
        self._parts = len(encoder.wholes)
        self._tell(encoder.schema)
        return self

    @property
    def fingerprint(self) -> str:
        """Nobody can know it."""
        return ""

    def partitions(self, check: Callable[[], None] = lambda: None) -> Partitions[Countable]:
        """Return the owners' compact records."""

        def asked(query: Any, access: Access) -> Iterator[tuple[str, Any]]:
            check()
            return self._counts(query, access)

        answers: Answers[Countable] = Answers(
            asked, self._nobody(self._parts), refused=self._refused, one_unit=self._one_unit
        )
        return answers

    def end(self, *, done: bool) -> None:
        """Let every owner close its charge; who does not hear of it keeps the full charge."""
        with contextlib.suppress(InputError):
            for _ in self._round("end", "end", {"done": done}):
                pass

    def told(self) -> dict[str, Any]:
        """Return what the run folder says of the owners."""
        return {
            "clients": self.names,
            "rounds": [{"asked": each.asked, "missed": each.missed} for each in self.rounds],
            "bytes_sent": self.bytes[0],
            "bytes_received": self.bytes[1],
        }

    # -- questions -----------------------------------------------------------------------------------------------

    def _tell(self, schema: ResolvedSchema) -> None:
        for _ in self._round("schema", "the learned facts", {"schema": schema.to_yaml()}):
            pass

    def _fact(self, query: Any, access: Access) -> Iterator[tuple[str, Any]]:
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

    def _counts(self, query: Any, access: Access) -> Iterator[tuple[str, Any]]:
        if not isinstance(query, Counts):
            raise TypeError(f"{type(query).__name__} is not asked of owners")
        return self._totals("counts", access, wire.counts_said(query))

    def _totals(self, ask: str, access: Access, question: Said) -> Iterator[tuple[str, Any]]:
        words = {**question.words, "access": self._plan.touches.index(access)}
        for node, said in self._round(ask, access.purpose, words, question.arrays):
            try:
                total = wire.total_heard(said)
            except InputError as error:
                self._refused(self._names[node], error.message)
            else:
                yield self._names[node], total

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
        self, ask: str, asked: str, words: Mapping[str, Any] | None = None, arrays: wire.Arrays | None = None
    ) -> Iterator[tuple[int, Said]]:
        """Put a question to everybody; yield whose answer is to this question, and what it is."""
        if ask != _HELLO:
            self._welcome_back()
        this = Round(asked=asked)
        self.rounds.append(this)
        own = {node: secrets.token_hex(_NONCE_BYTES) for node in self._names}
        common = {
            **(words or {}),
            "ask": ask,
            "version": wire.VERSION,
            "doublure": __version__,
            "plan": self._digest,
            "run": self._run,
        }
        messages = {node: Said({**common, "nonce": nonce}, arrays or {}) for node, nonce in own.items()}
        self.bytes[0] += sum(array.nbytes for array in (arrays or {}).values()) * len(messages)
        for node, said in self._post.sent(messages):
            if node not in self._names:
                self._refused(f"node {node}", "was not asked")
                continue
            fault = self._fault(said, own.pop(node, None))
            if fault is None and said is not None:
                self.bytes[1] += sum(array.nbytes for array in said.arrays.values())
                yield node, said
            else:
                self._refused(self._names[node], fault or _ANOTHER)
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
        if not this.asked.startswith("who "):
            self._said(f"{owner} {why}; it counts for zero in this round: {this.asked}")

    def _nobody(self, parts: int) -> Nobody:
        schema = self._plan.schema
        columns = {name: column for name, column in schema.columns.items() if column.type != "id"}
        return Nobody(parts, no_records(columns, schema.misfit))
