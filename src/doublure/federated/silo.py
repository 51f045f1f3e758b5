"""The owner's side of a federation: its data, plan and ledger, and its answers, independent of any network.

=====================================  ==============================================================================
question                               action
=====================================  ==============================================================================
``hello``                              plans are compared, the ledger is looked at; nothing is charged, and the data is
                                       not opened. The owner says how many units it declares: public
``header``                             the data's form is compared with the schema
``begin``                              the plan is charged to the owner's own ledger, once, or again with the owner's
                                       own leave; then the records are read, and encoded where no fact is learned
``schema``                             the facts that were learned are taken over; not asked where none is
``fact``, ``counts``, ``sums``,        the exact answer, or the clipped gradients of a lot, if this owner's own plan
``step``                               pays for it
``end``                                the charge is closed; where nothing was asked, at zero. No record is read for it
=====================================  ==============================================================================

A question is on disk before it is answered (``asked.jsonl`` beside ``session.json``, mode 0600), and is then marked in
the ledger. The last step's answer is kept beside (``step.bin``): asked again, its lot would be another one. An owner
that was killed therefore goes on with its charge, and answers nothing that was not paid for. A fact that is marked but
not noted was answered; it is not answered again. One process at a time answers from a folder, and checks there whether
another one has meanwhile. The asking process receives the kind of an error and no more; the owner's own log has the
details.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from doublure._version import __version__
from doublure.data.opening import Given, Source, open_data
from doublure.data.tables.source import TableSource
from doublure.encode.choice import encoder_for
from doublure.errors import BudgetRefused, DataError, DoublureError, InputError, LedgerError, SettingError
from doublure.federated import declared, wire
from doublure.federated.steps import STEP, SUMS, NetworkPool, OwnerComputation, decode_step
from doublure.federated.wire import BEGIN, CHARGED, END, HEADER, HELLO
from doublure.ledger import Ledger, Reservation
from doublure.ledger.places import find_place
from doublure.methods import registry as methods
from doublure.planning import Plan
from doublure.private.accounting import GaussianEvent
from doublure.private.codes import ColumnCodes
from doublure.private.owners import Owner, find_fact
from doublure.run.fitting import refuse_unaffordable
from doublure.run.record_sources import EncodedInMemory, InMemoryRecords, OnDiskRecords
from doublure.schema import ResolvedSchema
from doublure.support import files
from doublure.support.messages import Message, malformed, require_word

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.private.queries.query import Answer

_LOG = logging.getLogger("doublure.federated")
_NETWORKS = NetworkPool()
_SESSION, _ASKED, _STEP = "session.json", "asked.jsonl", "step.bin"
_NOTHING: Literal["no-noise-drawn"] = "no-noise-drawn"
_KINDS: tuple[tuple[type[DoublureError], str], ...] = (
    (BudgetRefused, "its ledger does not pay for the plan"),
    (LedgerError, "its ledger refuses"),
    (DataError, "its data does not fit the schema"),
    (SettingError, "its plan does not pay for what was asked"),
)


class Silo:
    """One owner.

    Args:
        name: The owner's public name.
        data: The owner's records.
        plan: The owner's copy of the plan.
        ledger: The owner's ledger; if ``makes_ledger``, one that pays for this plan alone is created there.
        folder: The owner's own, for notes of questions, and for records while they are counted.
        units: The public bound on the owner's units, never counted from the records. It bounds the owner's answers;
            None: the plan's units do (:mod:`doublure.federated.declared`).
        again: Whether a plan may be charged that the ledger is charged for already. Only the owner can allow it.
        makes_ledger: Whether a missing ledger is created, for simulations.
    """

    def __init__(
        self,
        *,
        name: str,
        data: Given,
        plan: Plan,
        ledger: str | Path,
        folder: Path,
        units: int | None = None,
        again: bool = False,
        makes_ledger: bool = False,
    ) -> None:
        self.name = name
        self._data = data
        self._plan = plan
        self._ledger = ledger
        self._folder = folder
        self._units = units
        self._again = again
        self._makes_ledger = makes_ledger
        self._digest = wire.plan_digest(plan)
        self._warned: tuple[object, str] | None = None
        self._run: str | None = None
        self._reservation: Reservation | None = None
        self._kept: dict[str, Any] = {}
        self._owner: Owner | None = None
        self._records: OnDiskRecords | InMemoryRecords | None = None
        self._codes: ColumnCodes | EncodedInMemory | None = None
        self._rebuilding: OwnerComputation | None = None

    def answer(self, message: Message) -> Message:
        """Return the answer to a message; a refusal is an answer, too."""
        words = message.words
        try:
            answer = self._answer(message)
            refused = None
        except DoublureError as error:
            if (warned := (words.get("run"), str(error))) != self._warned:  # once a run, and not in each round
                self._warned = warned
                _LOG.warning("%s: %s", self.name, error)
            kind = next((told for known, told in _KINDS if isinstance(error, known)), None)
            if isinstance(error, _Refusal):
                kind = error.message
            answer, refused = Message(), kind or "it could not"
        except Exception as error:
            _LOG.error("%s: %s", self.name, type(error).__name__, exc_info=error)
            answer, refused = Message(), "it failed"
        head = {
            "version": wire.VERSION,
            "doublure": __version__,
            "nonce": words.get("nonce"),
            "name": self.name,
            "plan": self._digest,
            "refused": refused,
        }
        return Message({**answer.words, **head}, answer.arrays)

    def _answer(self, message: Message) -> Message:
        words = message.words
        if words.get("version") != wire.VERSION:
            raise _Refusal("it speaks another version", field="version", remedy="use the same doublure at both ends")
        if words.get("plan") != self._digest:
            raise _Refusal("it has another plan", field="plan", remedy="give every owner the same plan.json")
        ask, run = words.get("ask"), words.get("run")
        if not isinstance(run, str) or not isinstance(ask, str):
            raise malformed("message")
        if ask == HELLO:
            return self._hello(run)
        if ask == HEADER:
            self._source()
            return Message()
        if ask not in (BEGIN, END) and self._session().get("run") is None:
            raise _absent()
        with self._alone():
            if ask == BEGIN:
                return self._begin(run)
            if ask == END:
                return self._end(message)
            self._go_on(run)
            known = {
                "schema": self._schema,
                "fact": self._fact,
                "counts": self._counts,
                STEP: self._step,
                SUMS: self._sums,
            }
            if ask not in known:
                raise malformed("message")
            return known[ask](message)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Lock the folder against other processes and threads, which could answer for the same price."""
        import fcntl  # where there is none, the ledger has refused the run

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)  # NFS locks what is open for writing
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # a child forked meanwhile may hold a copy of the descriptor
        finally:
            os.close(lock)

    # -- before and after ----------------------------------------------------------------------------------------

    def _source(self) -> Source:
        source = open_data(self._data, self._plan.kind, self._plan.schema.written)
        source.check(self._plan.schema)
        return source

    def _read(self) -> OnDiskRecords | InMemoryRecords:
        """Return the records: on disk for counting, in memory for drawing lots."""
        plan, source = self._plan, self._source()
        if methods.method(plan.method).work(plan.schema, plan.settings).records_bytes:
            if not isinstance(source, TableSource):
                raise SettingError("is not counted by owners", field=plan.kind, remedy="plan for a table")
            return OnDiskRecords(source, plan.schema, self._folder, at_least=0)
        return InMemoryRecords(source, plan.schema)

    def _hello(self, run: str) -> Message:
        """Answer whether this owner is ready, without opening the data."""
        try:
            declared.require_declarable(self._units, self._plan.schema, field=self.name)
        except InputError as error:  # of public numbers alone
            raise _Refusal(f"it {error.message}", field="units", remedy=error.remedy) from None
        methods.method(self._plan.method).ready(self._plan.schema, self._plan.settings)
        if not self._charged(run) and not (self._makes_ledger and not find_place(self._ledger).exists()):
            book = Ledger.open(self._ledger)
            if not self._again:
                book.refuse_repeated(self._plan)
            refuse_unaffordable(book, self._plan)
        return Message({wire.UNITS: self._units}, {})

    def _begin(self, run: str) -> Message:
        """Charge the plan, once per run, then read. The reservation's id is on disk before the charge."""
        if not self._charged(run):
            self._close()
            (self._folder / _STEP).unlink(missing_ok=True)  # of another run

            def promise(reservation: str, session: str) -> None:
                self._kept = {"run": run, "reservation": reservation, "session": session}
                self._write()

            self._take(run, self._book().reserve(self._plan, again=self._again, promise=promise))
        self._go_on(run)
        if not self._plan.schema.questions:
            self._resolve(self._plan.schema.resolve({}))
        return Message()

    def _charged(self, run: str) -> bool:
        """Whether this owner is charged for a run: it has begun here, in the ledger too, and was not closed at zero."""
        kept = self._session()
        if kept.get("run") != run:
            return False
        own = [each for each in self._book().entries if each.body.get("id") == kept.get("reservation")]
        kinds = {(each.kind, each.body.get("status")) for each in own}
        return ("reserve", None) in kinds and ("close", _NOTHING) not in kinds

    def _go_on(self, run: str) -> None:
        """Prepare this process for a run, with its records read.

        Raises:
            InputError: It never began here, or its records cannot be read.
        """
        self._take_up(run)
        if self._records is None:
            records = self._read()
            records.read()
            self._records = records
            if (schema := self._kept.get("schema")) is not None:
                self._encode(ResolvedSchema.parse(schema))

    def _take_up(self, run: str) -> None:
        """Take over a run's charge, from this process or from another one that then stops.

        Raises:
            InputError: It never began here.
        """
        kept = self._session()
        if self._run != run or kept != self._kept:
            if kept.get("run") != run:
                raise _absent()
            self._kept = kept
            self._take(run, self._resumed())

    def _take(self, run: str, reservation: Reservation) -> None:
        self._run, self._reservation = run, reservation
        self._forget()
        self._owner = Owner(
            self._plan.touches,
            units=declared.unit_bound(self._units, self._plan.schema),
            authorise=self._authorise,
            note=self._note,
            asked=self._asked(run),
            keep=self._keep,
        )

    def _resumed(self) -> Reservation:
        kept, refusal = self._kept, None
        for session in [kept["session"], *kept.get("next_sessions", [])]:

            def promise(fresh: str, session: str = session) -> None:
                self._kept = {**kept, "session": session, "next_sessions": [fresh]}
                self._write()

            try:
                found = self._book().resume(kept["reservation"], session, plan=self._plan, promise=promise)
            except LedgerError as error:
                refusal = refusal or error
                continue
            self._kept = {**kept, "session": found.session, "next_sessions": []}
            self._write()
            return found
        raise refusal or LedgerError("knows no session", field=self.name, remedy="begin again")

    def _end(self, message: Message) -> Message:
        """Close a run's charge, and answer whether it stays."""
        run = message.words["run"]
        if self._charged(run):
            self._take_up(run)
            self._close(done=message.words.get("done") is True)
        return Message({CHARGED: self._charged(run)}, {})

    def _close(self, *, done: bool = False) -> None:
        """Close the charge, at zero if nothing was asked."""
        reservation, self._reservation, self._run = self._reservation, None, None
        self._forget()
        if done:
            (self._folder / _STEP).unlink(missing_ok=True)
        self._owner = None
        if reservation is None or reservation.status != "open":
            return
        if reservation.authorised == 0 and not reservation.drawn:
            reservation.close(_NOTHING, steps=None)
        else:
            reservation.close("done" if done else "interrupted", steps=reservation.authorised)

    def _forget(self) -> None:
        if self._codes is not None:
            self._codes.close()
        self._codes = self._records = self._rebuilding = None

    # -- questions -----------------------------------------------------------------------------------------------

    def _schema(self, message: Message) -> Message:
        """Take over the learned facts; facts that this owner's plan declares may not change."""
        found = ResolvedSchema.parse(require_word(message.words, "schema", str, "schema"))
        text = found.to_yaml()
        if self._kept.get("schema", text) != text:  # counts by other codes would be another answer
            raise _Refusal("its facts were learned before", field="schema", remedy="begin again")
        planned = self._plan.schema
        learned = {
            each.path: found.units if each.column is None else found.columns[each.column].fact(each.fact)
            for each in planned.questions
            if each.column is None or each.column in found.columns
        }
        if planned.resolve(learned).to_yaml() != text:
            raise _Refusal("it declares other facts", field="schema", remedy="give every owner the same plan.json")
        self._resolve(found)
        return Message()

    def _resolve(self, schema: ResolvedSchema) -> None:
        """Encode the records by a resolved schema, and note durably which schema and records these are."""
        self._encode(schema)
        if self._codes is None:
            raise TypeError("nothing was encoded")
        self._kept = {**self._kept, "schema": schema.to_yaml(), "records": self._codes.fingerprint}
        self._write()

    def _encode(self, schema: ResolvedSchema) -> None:
        if self._records is None:
            raise TypeError("nothing was read")
        if self._codes is not None:
            return
        encoder = encoder_for(schema, self._plan.settings.encoding)
        codes = self._records.encoded(encoder, None)
        if self._kept.get("records", codes.fingerprint) != codes.fingerprint:
            codes.close()
            raise _Refusal("its records are others than before", field="data", remedy="put them back, or begin again")
        self._codes = codes
        if isinstance(codes, EncodedInMemory):
            self._rebuilding = OwnerComputation(self._plan, encoder, units=self._units)

    def _fact(self, message: Message) -> Message:
        if self._records is None or self._codes is not None:
            raise _Refusal("its facts were learned before", field="fact", remedy="begin again")
        path = require_word(message.words, "path", str)
        values = message.words.get("values")
        if values is not None and not (isinstance(values, list) and all(isinstance(each, str) for each in values)):
            raise malformed("question")
        query = find_fact(self._plan.schema, path, None if values is None else tuple(values))
        return self._respond(query, message, self._records.facts())

    def _counts(self, message: Message) -> Message:
        if self._codes is None:
            raise _Refusal("it has missed the schema", field="schema", remedy="begin again")
        query = wire.decode_counts(message, self._plan.schema.most_records)
        return self._respond(query, message, self._codes.partitions())

    def _step(self, message: Message) -> Message:
        """Answer with the clipped gradients of a lot, or of the one unit where coins were tossed already."""
        codes, own, access = self._computing(message)
        if not isinstance(access.event, GaussianEvent):
            raise malformed("question")
        view, event = own.view(message), access.event
        with _NETWORKS.lend(
            message, (self._digest, own.schema, access, self._units), lambda: own.critic(event, view)
        ) as critic:
            query, chosen = decode_step(message, critic)
            if chosen and codes.n_units > 1:
                raise _Refusal("it has more than one unit", field="unit", remedy="leave --one-unit out")
            seen = codes.partitions().map(lambda records: own.seen(message, records, view))
            return self._respond(query, message, seen, chosen=chosen)

    def _sums(self, message: Message) -> Message:
        """Answer with a sum of bounded vectors."""
        codes, own, access = self._computing(message)
        view, query = own.view(message), own.sums(message, access)
        return self._respond(query, message, codes.partitions().map(lambda records: own.seen(message, records, view)))

    def _computing(self, message: Message) -> tuple[EncodedInMemory, OwnerComputation, Access]:
        """Return the records, the rebuilt networks, and the access of this owner's plan that pays."""
        if not isinstance(self._codes, EncodedInMemory) or self._rebuilding is None:
            raise _Refusal("it has missed the schema", field="schema", remedy="begin again")
        number = require_word(message.words, "access", int)
        if not 0 <= number < len(self._plan.touches):
            raise malformed("question")
        return self._codes, self._rebuilding, self._plan.touches[number]

    def _respond(self, query: Any, message: Message, records: Any, *, chosen: bool = False) -> Message:
        number = require_word(message.words, "access", int)
        asked = {key: value for key, value in message.words.items() if key not in ("nonce", "doublure")}
        if self._owner is None:
            raise TypeError("the run has not begun")
        digest = Message(asked, message.arrays).sha256
        if (kept := self._kept_step(number, digest)) is not None and self._owner.repeats(number, digest):
            return kept
        answer = self._owner.answer(query, number, digest, records, chosen=chosen)
        return answer.to_message()

    # -- files ---------------------------------------------------------------------------------------------------

    def _authorise(self, access: Any, step: int) -> None:
        if self._reservation is None:
            raise LedgerError("has no charge", field=self.name, remedy="begin again")
        if step == 0:
            mark = self._reservation.mark_of(self._plan.touches.index(access))
            if mark not in self._reservation.drawn:
                self._reservation.noise_drawn(mark)
        elif step > self._reservation.authorised:
            self._reservation.advance(self._plan.steps)  # all of them at once: the charge is for all of them

    def _note(self, number: int, digest: str, tables: int, answer: str) -> None:
        """Note a question durably; a line that was cut short was not answered.

        Raises:
            LedgerError: It asks for a fact that is marked in the ledger already.
        """
        access, own = self._plan.touches[number], self._reservation
        if own is not None and access.path is not None and own.mark_of(number) in own.drawn:
            raise LedgerError(
                "was told before, and its note is gone", field=access.purpose, remedy=f"put {_ASKED} back"
            )
        line = json.dumps([self._run, number, digest, tables, answer]) + "\n"
        with (self._folder / _ASKED).open("a", encoding="ascii") as file:
            os.fchmod(file.fileno(), 0o600)
            new = file.tell() == 0
            file.write(line if new else "\n" + line)
            file.flush()
            os.fsync(file.fileno())
        if new:
            files.sync_folder(self._folder)

    def _keep(self, number: int, digest: str, answer: Answer) -> None:
        """Keep a step's answer in place of the one before, readable by its owner alone."""
        said = answer.to_message()
        content = Message({"access": number, "digest": digest, "said": said.words}, said.arrays).to_bytes()
        files.write_atomic(self._folder / _STEP, lambda file: file.write(content), mode=0o600)

    def _kept_step(self, number: int, digest: str) -> Message | None:
        """Return the answer that is kept for a step's question; None if it is another's, or damaged."""
        with contextlib.suppress(FileNotFoundError, InputError, KeyError):
            kept = Message.from_bytes((self._folder / _STEP).read_bytes())
            if (kept.words["access"], kept.words["digest"]) == (number, digest):
                return Message(kept.words["said"], kept.arrays)
        return None

    def _asked(self, run: str) -> dict[int, dict[str, tuple[int, str]]]:
        found: dict[int, dict[str, tuple[int, str]]] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in (self._folder / _ASKED).read_text(encoding="ascii", errors="replace").splitlines():
                with contextlib.suppress(ValueError, TypeError):
                    of, number, digest, tables, answer = json.loads(line)
                    if of == run:
                        found.setdefault(number, {})[digest] = tables, answer
        return found

    def _write(self) -> None:
        files.write_json(self._folder / _SESSION, self._kept, mode=0o600)

    def _session(self) -> dict[str, Any]:
        with contextlib.suppress(InputError):
            return dict(files.read_json(self._folder / _SESSION, "session", dict))
        return {}

    def _book(self) -> Ledger:
        if self._makes_ledger and not find_place(self._ledger).exists():
            epsilon, delta = self._plan.worst_case or (self._plan.epsilon, self._plan.delta)
            if epsilon is None or delta is None:
                raise SettingError("claims nothing", field="plan", remedy="plan with an ε")
            return Ledger.create(self._ledger, dataset=self.name, epsilon=epsilon, delta=delta)
        return Ledger.open(self._ledger)

    def __repr__(self) -> str:
        return f"Silo({self.name!r}, private)"


class _Refusal(InputError):
    """A refusal whose text is sent to the asking process."""


def _absent() -> _Refusal:
    return _Refusal("it was not there when the run began", field="run", remedy="begin again")
