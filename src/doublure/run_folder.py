"""A run on disk: private parts apart, every file whole, versioned, resumable.

::

    run/                      mode 0700
      run.json                what this is, and where it stands
      plan.json               what was planned
      schema.yaml             resolved: what was bought is in it
      guarantee.json          what may be claimed
      generator.safetensors   weights, schema and plan; nothing else
      log.jsonl               public figures of the training
      internal/               never read by sample and release
        checkpoint.safetensors
"""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure import files
from doublure._version import __version__
from doublure.errors import InputError, RunFolderError
from doublure.guarantee import Guarantee
from doublure.methods import table
from doublure.methods.base import encoder_for
from doublure.planning import Plan
from doublure.schema import ResolvedSchema

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.synthesizer import Synthesizer

VERSION = 1
_LARGEST_WEIGHTS = 20_000_000_000


class RunFolder:
    """One run's files.

    Args:
        path: The folder, which exists.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.internal = path / "internal"

    # -- making and opening --------------------------------------------------------------------------------------

    @classmethod
    def create(cls, path: Path, plan: Plan) -> RunFolder:
        """Make a new run folder.

        Raises:
            RunFolderError: Something is there already, or the folder cannot be made.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunFolderError("is not empty", field=path, remedy="choose another -o, or go on with --resume")
        folder = cls(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.chmod(0o700)
            folder.internal.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise files.unwritable(path, error) from None
        plan.save(path / "plan.json")
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        folder.write_run({"doublure_version": __version__, "created": now, "method": plan.method, "status": "planned"})
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run folder.

        Raises:
            RunFolderError: It is none, or is of another version.
        """
        if not (path / "run.json").is_file():
            raise RunFolderError("is not a run folder", field=path, remedy="give the folder that doublure fit -o made")
        folder = cls(path)
        version = folder.run.get("version")
        if version != VERSION:
            raise RunFolderError(
                f"is a run folder of version {version!r}, and this doublure reads version {VERSION}",
                field=path,
                remedy="use the doublure that made it, or fit again",
            )
        return folder

    # -- run.json ------------------------------------------------------------------------------------------------

    @property
    def run(self) -> dict[str, Any]:
        """What ``run.json`` says."""
        data: dict[str, Any] = self._json("run.json")
        return data

    def write_run(self, data: dict[str, Any]) -> None:
        """Replace ``run.json``."""
        files.write_json(self.path / "run.json", {"version": VERSION, **data})

    def update_run(self, **changes: Any) -> None:
        """Change some keys of ``run.json``."""
        self.write_run({**self.run, **changes})

    # -- plan, schema, guarantee ---------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan, checked."""
        return Plan.from_json(self._json("plan.json"))

    @property
    def schema(self) -> ResolvedSchema | None:
        """The resolved schema, once everything that was to be learned has been."""
        path = self.path / "schema.yaml"
        return ResolvedSchema.load(path) if path.is_file() else None

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

    # -- weights -------------------------------------------------------------------------------------------------

    def save_generator(self, generator: nn.Module, schema: ResolvedSchema, plan: Plan) -> str:
        """Write ``generator.safetensors``: weights, schema and plan. Return its SHA-256."""
        from safetensors.torch import save

        # The schema within the plan is the public one; what was bought is in the schema beside it.
        metadata = {
            "doublure": __version__,
            "schema": json.dumps(schema.to_plain(), ensure_ascii=False),
            "plan": json.dumps(plan.to_json(), ensure_ascii=False),
            "watermark": plan.guarantee.watermark,
        }
        tensors = {name: value.detach().cpu().contiguous() for name, value in generator.state_dict().items()}
        content = save(tensors, metadata)
        files.write_atomic(self.path / "generator.safetensors", lambda file: file.write(content))
        return hashlib.sha256(content).hexdigest()

    def load_generator(self, schema: ResolvedSchema, plan: Plan) -> nn.Module:
        """Read the weights into a generator of the shape that the plan gives.

        Raises:
            RunFolderError: The file is missing, damaged, or of another shape.
        """
        method = table.method(plan.method)
        generator = method.build(encoder_for(schema, plan.settings), plan.settings, seed=0)
        tensors = read_tensors(self.path / "generator.safetensors")
        try:
            generator.load_state_dict(tensors)
        except RuntimeError:
            raise _damaged(self.path / "generator.safetensors") from None
        return generator.eval()

    # -- checkpoints (methods.base.Checkpoints) --------------------------------------------------------------------

    def save(self, step: int, tensors: dict[str, Tensor]) -> None:
        """Keep the state of the training; no randomness among it."""
        from safetensors.torch import save

        content = save(tensors, {"step": str(step)})
        files.write_atomic(self.internal / "checkpoint.safetensors", lambda file: file.write(content), mode=0o600)

    def load(self) -> dict[str, Tensor] | None:
        """Return the kept state, if there is one."""
        path = self.internal / "checkpoint.safetensors"
        return read_tensors(path) if path.is_file() else None

    def log(self, line: dict[str, Any]) -> None:
        """Add one line of public figures."""
        try:
            with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError as error:
            raise files.unwritable(self.path / "log.jsonl", error) from None

    # -- whole synthesizers --------------------------------------------------------------------------------------

    @classmethod
    def export(cls, path: Path, syn: Synthesizer) -> None:
        """Write a fitted synthesizer as a run folder."""
        folder = cls.create(path, syn.plan)
        folder.save_schema(syn.schema)
        folder.save_guarantee(syn.guarantee)
        folder.save_generator(syn.generator, syn.schema, syn.plan)
        folder.write_run({**syn.run, "status": "done"})

    def synthesizer(self) -> Synthesizer:
        """Read a finished run.

        Raises:
            RunFolderError: The run is not finished, or a file is damaged.
        """
        from doublure.synthesizer import Synthesizer

        run = self.run
        schema = self.schema
        if run.get("status") != "done" or schema is None:
            raise RunFolderError("is not finished", field=self.path, remedy="go on with doublure fit --resume")
        plan = self.plan
        generator = self.load_generator(schema, plan)
        facts = {key: value for key, value in run.items() if key not in ("version", "status")}
        return Synthesizer(schema=schema, plan=plan, guarantee=self.guarantee, generator=generator, run=facts)

    def _json(self, name: str) -> Any:
        try:
            return files.read_json(self.path / name, "run folder")
        except InputError as error:
            raise RunFolderError(error.message, field=self.path / name, remedy="the run folder is damaged") from None


def load(path: str | Path) -> Synthesizer:
    """Read a finished run folder.

    Raises:
        RunFolderError: There is none, it is not finished, or it is damaged.
    """
    return RunFolder.open(Path(path)).synthesizer()


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; nothing in it is executed.

    Raises:
        RunFolderError: It is missing or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.stat().st_size > _LARGEST_WEIGHTS:
            raise _damaged(path)
        tensors: dict[str, Tensor] = load_file(path)
    except (OSError, SafetensorError, ValueError, KeyError):
        raise _damaged(path) from None
    return tensors


def _damaged(path: Path) -> RunFolderError:
    return RunFolderError("is missing or damaged", field=path, remedy="fit again, or go on with --resume")
