"""A run on disk: atomic files, private parts apart, versioned, resumable.

::

    run/                      mode 0700
      run.json                facts and status of the run
      plan.json               the plan
      schema.yaml             resolved, with the bought facts
      guarantee.json          the claim
      executed.json           events that ran beside those priced: an object per access of the plan
      generator.safetensors   weights, schema and plan; nothing else
      tables.safetensors      the noisy tables that were bought, if the method hands them out
      log.jsonl               public figures of the training
      internal/               never read by sample and release
        checkpoint.safetensors
        answer-*.safetensors  noisy answers as they were drawn, one a file; only until the run is finished
        estimate.json         the ε_μ that decided a Bayesian claim
        codes                 encoded records of a table that memory does not hold; only until the run is finished
        work-*.safetensors    private numbers that take long to compute; only until the run is finished
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure._version import __version__
from doublure.advisories import REMEDY, known_fault
from doublure.errors import InputError, PrivacyWarning, RunFolderError
from doublure.guarantee import Guarantee
from doublure.planning import Plan
from doublure.run import weights
from doublure.run.answers import AnswersInFolder
from doublure.schema import ResolvedSchema
from doublure.support import files
from doublure.support.tensors import Array, damaged_file, read_arrays, sha256_of, to_safetensors
from doublure.training.noisy_tables import read_noisy_tables, write_tables

if TYPE_CHECKING:
    from doublure.networks.array_generator import AnyGenerator
    from doublure.training.job import State
    from doublure.training.noisy_tables import NoisyTable

VERSION = 1
_EXECUTED = "executed.json"
_TABLES = "tables.safetensors"
_FILES = (
    "run.json",
    "plan.json",
    "schema.yaml",
    "guarantee.json",
    weights.FILE,
    "log.jsonl",
    "executed.json",
    _TABLES,
)
_UNFINISHED = ("reserved", "resumed", "interrupted", "aborted")
_CHECKPOINT = "checkpoint.safetensors"
_ESTIMATE = "estimate.json"
_WORK = "work-{name}.safetensors"
_CODES = "codes"


class RunFolder:
    """One run's files.

    Args:
        path: The folder, which exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.internal = path / "internal"
        self.answers = AnswersInFolder(self.internal)
        self._records: str | None = None

    # -- making and opening --------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, plan: Plan) -> RunFolder:
        """Make a new run folder.

        Raises:
            RunFolderError: Something is there already, or the folder cannot be made.
        """
        folder = cls(path)
        try:
            cls.refuse_taken(path)
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
            folder.internal.mkdir(mode=0o700)  # of two processes that found the folder empty, one makes this
        except FileExistsError:
            raise folder._taken() from None
        except OSError as error:
            raise files.Unwritable(path, error) from None
        try:
            plan.save(path / "plan.json")
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            begun = {"doublure_version": __version__, "created": now, "method": plan.method, "status": "planned"}
            folder.write_run(begun)
        except BaseException:
            folder.discard()
            raise
        return folder

    @classmethod
    def refuse_taken(cls, path: Path) -> None:
        """Refuse a path that is taken, and name its content.

        Raises:
            RunFolderError: It is taken.
        """
        if files.holds_anything(path):
            raise cls(path)._taken()

    def _taken(self) -> RunFolderError:
        with contextlib.suppress(InputError):
            if self.path.is_dir() and (self.path / "run.json").is_file():
                status = self.run.get("status")
                if status == "planned":
                    return RunFolderError("was cut off before it could begin", field=self.path, remedy="remove it")
                if status == "done":
                    remedy = "choose another -o, or sample from it"
                    return RunFolderError("holds a finished run", field=self.path, remedy=remedy)
                return RunFolderError(
                    "holds a run that is not finished",
                    field=self.path,
                    remedy="choose another -o, or go on with --resume",
                )
        return RunFolderError("is not empty", field=self.path, remedy="choose another -o")

    @contextlib.contextmanager
    def lock(self, *, wait: bool = False) -> Iterator[RunFolder]:
        """Lock the run against other processes, until this block or process ends, however it ends.

        The lock is on ``plan.json``, which is written once and never replaced. Where the file system knows no locks,
        the ledger alone decides who goes on.

        Args:
            wait: Wait for another process that holds the folder, instead of giving up.

        Raises:
            RunFolderError: Another process holds it, or it is no longer there.
        """
        import fcntl  # where there is none, the ledger has refused the run

        path = self.path / "plan.json"
        try:
            file = path.open("rb+")
        except OSError:
            raise damaged_file(path) from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise RunFolderError(
                    "is in use by another process", field=self.path, remedy="wait until that one has ended"
                ) from None
            except OSError:
                pass  # no locks here
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                raise damaged_file(path)  # removed between the two
            try:
                yield self
            finally:
                with contextlib.suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)  # a child forked meanwhile may hold a copy of the descriptor

    def discard(self) -> None:
        """Remove the files of a failed run, and the folder if nothing else is in it."""
        with contextlib.suppress(OSError):
            self.sweep()
            for name in _FILES:
                (self.path / name).unlink(missing_ok=True)
            self.forget_state()
            self.internal.rmdir()
            self.path.rmdir()

    def sweep(self) -> None:
        """Remove half-written files of a killed process."""
        files.remove_partial_files(self.path)
        files.remove_partial_files(self.internal)
        log = self.path / "log.jsonl"
        if log.is_file() and not (content := log.read_bytes()).endswith(b"\n"):
            whole = content[: content.rfind(b"\n") + 1]
            files.write_atomic(log, lambda file: file.write(whole))

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder.

        Raises:
            RunFolderError: It is no run folder, or of another version.
        """
        if not (path / "run.json").is_file():
            remedy = "give the folder that doublure fit -o made; a fit that made none was charged nothing"
            raise RunFolderError("is not a run folder", field=path, remedy=remedy)
        folder = cls(path)
        version = folder.run.get("version")
        if version != VERSION:
            raise RunFolderError(
                f"is a run folder of version {version!r}, and this doublure reads version {VERSION}",
                field=path,
                remedy="use the doublure that made it, or fit again",
            )
        return folder

    @classmethod
    def can_go_on(cls, path: Path) -> bool:
        """Whether a paid run is here that can be resumed; its private work is removed."""
        try:
            folder = cls.open(path)
            if not folder.unfinished:
                return False
        except InputError:
            return False
        folder.forget_all()
        return True

    # -- run.json ------------------------------------------------------------------------------------------------

    @property
    def run(self) -> dict[str, Any]:
        """The content of ``run.json``."""
        data: dict[str, Any] = self._json("run.json")
        return data

    def write_run(self, data: dict[str, Any]) -> None:
        """Replace ``run.json``."""
        files.write_json(self.path / "run.json", {"version": VERSION, **data})

    def update_run(self, **changes: Any) -> None:
        """Change some keys of ``run.json``."""
        self.write_run({**self.run, **changes})

    @property
    def unfinished(self) -> bool:
        """Whether the run was paid for, is not finished, and can be resumed."""
        return self.run.get("status") in _UNFINISHED

    @property
    def reservation(self) -> dict[str, Any]:
        """The ledger's facts in ``run.json``: data set, path, reservation, session."""
        kept = self.run.get("ledger")
        return kept if isinstance(kept, dict) else {}

    # -- plan, schema, guarantee ---------------------------------------------------------------------------------

    @property
    def fault(self) -> str | None:
        """The known fault of a claim that an earlier version made, if any."""
        return self._fault_of(self._json("plan.json")) or self._fault_of(self.plan.to_json())

    def _fault_of(self, written: dict[str, Any]) -> str | None:
        run = self.run
        made = [run.get("doublure_version"), *(run.get("resumed_by") or [])]
        return next((fault for version in made if (fault := known_fault(version, written)) is not None), None)

    @property
    def plan(self) -> Plan:
        """The plan, checked against its own settings; its cost was fixed when it was reserved.

        Raises:
            InputError: It is no plan, or was edited.
            RunFolderError: It is of another version of doublure, with other settings.
        """
        written = self._json("plan.json")
        fault = self._fault_of(written)
        if fault is not None:
            warnings.warn(f"{self.path}: {fault}; {REMEDY}", PrivacyWarning, stacklevel=2)
        made = weights.read_plan(written, self.run.get("doublure_version"), self.path)
        if fault is None and (fault := self._fault_of(made.to_json())) is not None:  # whatever its purposes say
            warnings.warn(f"{self.path}: {fault}; {REMEDY}", PrivacyWarning, stacklevel=2)
        return made

    @property
    def schema(self) -> ResolvedSchema | None:
        """The resolved schema, once all facts are learned."""
        path = self.path / "schema.yaml"
        if not path.is_file():
            return None
        try:
            return ResolvedSchema.load(path)
        except InputError as error:
            raise RunFolderError(error.message, field=_short(path), remedy=weights.EDITED) from None

    def save_schema(self, schema: ResolvedSchema) -> None:
        """Keep the resolved schema."""
        text = schema.to_yaml().encode()
        files.write_atomic(self.path / "schema.yaml", lambda file: file.write(text))

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""
        return Guarantee.from_json(self._json("guarantee.json"))

    def save_guarantee(self, guarantee: Guarantee) -> None:
        """Keep the claim."""
        files.write_json(self.path / "guarantee.json", guarantee.to_json())

    @property
    def executed(self) -> list[dict[str, Any]] | None:
        """The mechanism's record of what ran; None for a run that an earlier version began."""
        if not (self.path / _EXECUTED).is_file():
            return None
        found: list[dict[str, Any]] = self._json(_EXECUTED, list)
        return found

    def save_executed(self, executed: list[dict[str, Any]]) -> None:
        """Keep the record of what ran."""
        files.write_json(self.path / _EXECUTED, executed)

    @property
    def estimate(self) -> dict[str, Any] | None:
        """Figures estimated from private gradients, if they are kept here; for internal reports alone."""
        path = self.internal / _ESTIMATE
        found: dict[str, Any] | None = self._json(f"internal/{_ESTIMATE}") if path.is_file() else None
        return found

    def save_estimate(self, found: dict[str, Any]) -> None:
        """Keep figures estimated from private gradients, readable by their owner alone."""
        files.write_json(self.internal / _ESTIMATE, found, mode=0o600)

    # -- weights -------------------------------------------------------------------------------------------------

    def save_generator(self, generator: AnyGenerator, schema: ResolvedSchema, plan: Plan, guarantee: Guarantee) -> str:
        """Write ``generator.safetensors`` (weights, schema, plan, claim, hash of tables), and return its SHA-256."""
        content = weights.generator_file(generator, schema, plan, guarantee, self.run.get("tables_sha256"))
        files.write_atomic(self.path / weights.FILE, lambda file: file.write(content))
        return hashlib.sha256(content).hexdigest()

    def load_weights(self, schema: ResolvedSchema, plan: Plan) -> dict[str, Array]:
        """Return the generator's weights.

        Raises:
            RunFolderError: The file is missing, damaged, or does not match ``run.json``, the schema and the plan.
        """
        path = self.path / weights.FILE
        if path.is_file() and sha256_of(path) != self.run.get("generator_sha256"):
            said = "is not the generator that run.json names"
            raise RunFolderError(said, field=_short(path), remedy=weights.EDITED)
        return weights.read(path, schema, plan, self.guarantee, self.run.get("tables_sha256"))

    @property
    def tables(self) -> tuple[NoisyTable, ...]:
        """The released noisy tables; none for most methods, and for runs of earlier versions.

        Raises:
            RunFolderError: The file is missing, damaged, or not the one that ``run.json`` names.
        """
        sha256 = self.run.get("tables_sha256")
        return () if sha256 is None else read_noisy_tables(self.path / _TABLES, sha256)

    def save_tables(self, tables: Sequence[NoisyTable]) -> None:
        """Keep the released noisy tables, if there are any."""
        if tables:
            self.update_run(tables_sha256=write_tables(self.path / _TABLES, tables))

    # -- checkpoints (methods.base.Checkpoints) --------------------------------------------------------------------

    def save(self, step: int, state: State) -> None:
        """Keep the state of the training, which holds no randomness."""
        of = {} if self._records is None else {"records": self._records}
        content = to_safetensors(state, {"step": str(step), **of})
        files.write_atomic(self.internal / _CHECKPOINT, lambda file: file.write(content), mode=0o600)

    def load(self) -> dict[str, Array] | None:
        """Return the checkpoint, if there is one."""
        path = self.internal / _CHECKPOINT
        return read_arrays(path)[1] if path.is_file() else None

    @property
    def kept_step(self) -> int | None:
        """The step whose state is kept, if there is one."""
        path = self.internal / _CHECKPOINT
        if not path.is_file():
            return None
        step = read_arrays(path)[0].get("step", "")
        if not (step.isascii() and step.isdigit()):
            raise damaged_file(path)
        return int(step)

    def refuse_other_records(self, fingerprint: str) -> None:
        """Refuse to resume from a state or answers of other records; files kept from now on name these.

        Args:
            fingerprint: Of the records, empty where each load draws others. Private, like the files that name it.

        Raises:
            RunFolderError: The kept files are of other records.
        """
        path = self.internal / _CHECKPOINT
        same = not path.is_file() or read_arrays(path)[0].get("records", fingerprint) == fingerprint
        if not same or not self.answers.are_of(fingerprint):
            remedy = "give the same data, or fit into a new folder"
            raise RunFolderError("was begun with other records, or in another order", field=self.path, remedy=remedy)
        self._records = self.answers.records = fingerprint

    # -- private work (methods.base.Workspace) -----------------------------------------------------------------------

    def keep(self, name: str, state: State, key: str) -> None:
        """Keep private numbers under a name, readable by their owner alone."""
        content = to_safetensors(state, {"key": key})
        files.write_atomic(self._work(name), lambda file: file.write(content), mode=0o600)

    def kept(self, name: str, key: str) -> dict[str, Array] | None:
        """Return the numbers kept under a name; None if they are damaged or have another key."""
        path = self._work(name)
        if not path.is_file():
            return None
        try:
            metadata, state = read_arrays(path)
        except RunFolderError:
            return None  # it can be computed again
        return state if metadata.get("key") == key else None

    def forget(self, name: str) -> None:
        """Remove the numbers kept under a name."""
        self._work(name).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Remove all private work that is kept."""
        for path in self._works:
            path.unlink(missing_ok=True)
        self.forget_codes()

    @property
    def codes(self) -> Path:
        """Path of the codes of records that do not fit in memory, until the run is closed."""
        return self.internal / _CODES

    def forget_codes(self) -> None:
        """Remove the codes of all records."""
        self.codes.unlink(missing_ok=True)

    def forget_state(self) -> None:
        """Remove all kept state of the training."""
        self.forget_all()
        self.answers.forget_all()
        for name in (_CHECKPOINT, _ESTIMATE):
            (self.internal / name).unlink(missing_ok=True)

    @property
    def works(self) -> bool:
        """Whether private work is kept here."""
        return bool(self._works)

    @property
    def _works(self) -> list[Path]:
        return sorted(self.internal.glob(_WORK.format(name="*")))

    def _work(self, name: str) -> Path:
        return self.internal / _WORK.format(name=name)

    def log(self, line: dict[str, Any]) -> None:
        """Add one line of public figures."""
        try:
            with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise files.Unwritable(self.path / "log.jsonl", error) from None

    # -- whole runs ----------------------------------------------------------------------------------------------

    @classmethod
    def export(
        cls,
        path: Path,
        *,
        plan: Plan,
        schema: ResolvedSchema,
        guarantee: Guarantee,
        generator: AnyGenerator,
        run: Mapping[str, Any],
        executed: list[dict[str, Any]] | None,
        tables: Sequence[NoisyTable] = (),
    ) -> None:
        """Write a finished run as a folder, whole or not at all."""
        folder = cls.create(path, plan)
        try:
            folder.save_schema(schema)
            folder.save_guarantee(guarantee)
            if executed is not None:
                folder.save_executed(executed)
            folder.write_run({key: said for key, said in run.items() if key != "tables_sha256"})
            folder.save_tables(tables)
            sha256 = folder.save_generator(generator, schema, plan, guarantee)
            folder.update_run(status="done", generator_sha256=sha256)
        except BaseException:
            folder.discard()
            raise

    def _json(self, name: str, shape: type = dict) -> Any:
        try:
            return files.read_json(self.path / name, "run folder", shape)
        except InputError as error:
            raise RunFolderError(error.message, field=_short(self.path / name), remedy=weights.EDITED) from None


def _short(path: Path) -> str:
    """Return a file's name with its folder's: the end of a long path would be cut off."""
    return f"{path.parent.name}/{path.name}"
