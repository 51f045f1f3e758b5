"""A public generator on disk.

::

    public/
      public.json             facts, provenance and hashes; written last, so that a folder with it is complete
      generator.safetensors   d standard normal numbers -> one record
      encoder.safetensors     optional: a record -> the start of its inversion
      detail.safetensors      optional: covariance of the detail that the generator leaves out of images
      checkpoint.safetensors  only during a fit
      begun.json              only during a fit: its inputs, and its latest session; earlier sessions stop
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from doublure.errors import InputError, RunFolderError, SettingError, escaped
from doublure.public.facts import VERSION, PublicFacts, parse_facts
from doublure.public.settings import read as read_settings
from doublure.support import files
from doublure.support.tensors import all_finite, read_tensors, sha256_of, to_safetensors

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.training.job import State

FACTS, GENERATOR = "public.json", "generator.safetensors"
ENCODER, DETAIL = "encoder.safetensors", "detail.safetensors"
_FILES = (GENERATOR, ENCODER, DETAIL)
_HASHES = ("generator_sha256", "encoder_sha256", "detail_sha256")
_CHECKPOINT, _BEGUN, _SESSION = "checkpoint.safetensors", "begun.json", "session"
_FIT = "make it with doublure public fit"


class PublicWeights(NamedTuple):
    """The weights in a public folder.

    Attributes:
        generator: Weights of the generator, latents to records.
        encoder: Weights of the encoder, records to proposed latents; None without one.
        detail: Weights of the detail that is added to images; None without one.
    """

    generator: dict[str, Tensor]
    encoder: dict[str, Tensor] | None = None
    detail: dict[str, Tensor] | None = None


class PublicFolder:
    """The files of one public generator.

    Args:
        path: The folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._session: str | None = None

    # -- making --------------------------------------------------------------------------------------------------

    @classmethod
    def begun(cls, path: str | Path, fitting: dict[str, Any], *, resume: bool) -> PublicFolder:
        """Create the folder, or resume the fit in it.

        Args:
            path: A missing or empty folder; with ``resume`` one in which a fit was cut off.
            fitting: The fit's inputs: settings, seed, schema. They must be the same with ``resume``.
            resume: Whether to continue a fit.

        Raises:
            RunFolderError: The folder holds something else, or the fit had other inputs.
        """
        folder = cls(path)
        wanted = json.loads(json.dumps(fitting))
        if resume:
            if (folder.path / FACTS).is_file():
                raise RunFolderError("is finished", field=folder.path, remedy="use it, or choose another -o")
            begun = folder.reads_begun()
            if begun is None:
                remedy = "choose another -o" if files.holds_anything(folder.path) else "leave out --resume"
                raise RunFolderError("holds nothing to go on with", field=folder.path, remedy=remedy)
            other = [name for name in wanted if begun.get(name) != wanted[name]]
            if other:
                named = {"schema_sha256": "schema"}.get(other[0], other[0])
                remedy = f"give the same {named}, or choose another -o"
                raise RunFolderError(f"was begun with another {named}", field=folder.path, remedy=remedy)
            files.remove_partial_files(folder.path)
            folder._begin(begun)
            return folder
        try:
            if files.holds_anything(folder.path):
                cut = not (folder.path / FACTS).is_file() and "provenance" in (folder.reads_begun() or {})
                remedy = "choose another -o" + (", or go on with public fit --resume" if cut else "")
                raise RunFolderError("is not empty", field=folder.path, remedy=remedy)
            folder.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise files.Unwritable(folder.path, error) from None
        folder._begin(wanted)
        return folder

    def _begin(self, fitting: dict[str, Any]) -> None:
        self._session = secrets.token_hex(16)
        files.write_json(self.path / _BEGUN, {**fitting, _SESSION: self._session})

    @property
    def _is_ours(self) -> bool:
        return (self.reads_begun() or {}).get(_SESSION) == self._session

    def _refuse_if_resumed(self) -> None:
        """Refuse to write after another process has resumed the fit: two processes would write two generators.

        Raises:
            RunFolderError: Another process has resumed the fit.
        """
        if not self._is_ours:
            remedy = "leave the folder to it, or choose another -o"
            raise RunFolderError("was resumed by another process", field=self.path, remedy=remedy)

    def reads_begun(self) -> dict[str, Any] | None:
        """Return the inputs of the fit that was begun here; None without one."""
        begun: dict[str, Any] | None = None
        with contextlib.suppress(InputError):
            begun = files.read_json(self.path / _BEGUN, "folder that was begun")
        return begun

    def refuse_other_records(self, fingerprint: str) -> None:
        """Refuse to continue a fit with other records; the provenance describes the first ones.

        Args:
            fingerprint: Fingerprint of the records, which are public.

        Raises:
            RunFolderError: The records differ.
        """
        self._refuse_if_resumed()
        begun = self.reads_begun() or {}
        if begun.setdefault("records_sha256", fingerprint) != fingerprint:
            remedy = "give the same public data, or choose another -o"
            raise RunFolderError("was begun with other records", field=self.path, remedy=remedy)
        files.write_json(self.path / _BEGUN, begun)

    def discard(self) -> None:
        """Remove the folder of a fit without a checkpoint, so that the fit can be started again."""
        if self._is_ours and not (self.path / _CHECKPOINT).is_file():
            with contextlib.suppress(OSError):
                (self.path / _BEGUN).unlink(missing_ok=True)
                self.path.rmdir()

    def finish(self, facts: dict[str, Any], weights: PublicWeights) -> PublicFacts:
        """Write the weights, then the facts with their hashes; then remove the files of the fit.

        Raises:
            RunFolderError: Another process has resumed the fit.
        """
        self._refuse_if_resumed()
        found = dict(facts)
        for name, key, tensors in zip(_FILES, _HASHES, weights, strict=True):
            found[key] = None if tensors is None else self._write(name, tensors)
        made = PublicFacts.model_validate(found)
        files.write_json(self.path / FACTS, made.model_dump(mode="json"))
        for name in (_CHECKPOINT, _BEGUN):
            (self.path / name).unlink(missing_ok=True)
        return made

    def _write(self, name: str, tensors: dict[str, Tensor]) -> str:
        from safetensors.torch import save

        content = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
        files.write_atomic(self.path / name, lambda file: file.write(content))
        return hashlib.sha256(content).hexdigest()

    # -- state during a fit (training.job.Checkpoints) ------------------------------------------------------------

    def save(self, step: int, state: State) -> None:
        """Keep the state of the fit.

        Raises:
            SettingError: The fit has diverged.
            RunFolderError: Another process has resumed the fit.
        """
        if not all_finite(state):
            raise SettingError("diverged", field="public fit", remedy="give smaller learning rates, or fewer steps")
        self._refuse_if_resumed()
        content = to_safetensors(state, {"step": str(step)})
        files.write_atomic(self.path / _CHECKPOINT, lambda file: file.write(content))

    def load(self) -> dict[str, Tensor] | None:
        """Return the checkpoint, if there is one.

        Raises:
            RunFolderError: It is damaged.
        """
        path = self.path / _CHECKPOINT
        try:
            return read_weights(path) if path.is_file() else None
        except RunFolderError as error:
            raise RunFolderError(error.message, field=path, remedy="fit into a new folder") from None

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def facts(self) -> PublicFacts:
        """The content of ``public.json``.

        Raises:
            RunFolderError: It is missing, of another version, or damaged.
        """
        place = self.path / FACTS
        if not place.is_file():
            cut = (self.path / _BEGUN).is_file()
            what = "was cut off while it was fitted" if cut else "is not the folder of a public generator"
            raise RunFolderError(what, field=self.path, remedy="go on with --resume" if cut else _FIT)
        try:
            data = files.read_json(place, "public generator")
        except InputError as error:
            raise RunFolderError(error.message, field=self._named(FACTS), remedy=_FIT) from None
        if data.get("version") != VERSION:
            raise RunFolderError("is of another version", field=self._named(FACTS), remedy="fit it again")
        try:
            found = parse_facts(data)
            read_settings(found.kind, found.settings)
        except SettingError as error:
            what = f"has a setting that cannot be read ({error.field})"
            raise RunFolderError(what, field=self._named(FACTS), remedy="fit it again") from None
        except ValueError:
            raise RunFolderError("is damaged or was edited", field=self._named(FACTS), remedy="fit it again") from None
        return found

    def weights(self, pinned: PublicFacts) -> PublicWeights:
        """Return the weights.

        Raises:
            RunFolderError: They differ from the pinned ones, or are damaged.
        """
        self.refuse_another(pinned)
        beside = [None if pin is None else read_weights(self.path / name) for name, pin in _pins(pinned)[1:]]
        return PublicWeights(read_weights(self.path / GENERATOR), *beside)

    def refuse_another(self, pinned: PublicFacts) -> None:
        """Refuse other weights than the pinned ones, or another provenance: claims repeat it.

        Raises:
            RunFolderError: A file is missing, or its hash or the facts differ.
        """
        where = escaped(str(self.path.absolute()))  # a plan's relative path may lead to another folder from here
        remedy = f"put the plan's public generator at {where}, or make the plan again"
        for name, sha256 in _pins(pinned):
            if sha256 is not None and not (self.path / name).is_file():
                raise RunFolderError("is not there", field=self._named(name), remedy=remedy)
            if sha256 is not None and sha256_of(self.path / name) != sha256:
                raise RunFolderError("is not the public generator of the plan", field=self._named(name), remedy=remedy)
        if self.facts != pinned:
            what = "says something else of the public generator than the plan does"
            raise RunFolderError(what, field=self._named(FACTS), remedy=remedy)

    def _named(self, name: str) -> str:
        return f"{self.path.name}/{name}"


def _pins(facts: PublicFacts) -> list[tuple[str, str | None]]:
    return [(name, getattr(facts, key)) for name, key in zip(_FILES, _HASHES, strict=True)]


def load(path: str | Path) -> PublicFacts:
    """Read the facts of a public generator, and check the hashes of its weights.

    Raises:
        RunFolderError: The folder holds no public generator, or is damaged.
    """
    folder = PublicFolder(path)
    facts = folder.facts
    for name, sha256 in _pins(facts):
        if sha256 is not None and sha256_of(folder.path / name) != sha256:
            raise RunFolderError("is not what public.json says", field=folder._named(name), remedy=_FIT)
    return facts


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file of weights; nothing in it is executed.

    Raises:
        RunFolderError: It is missing, too large or damaged, or holds a number that is not finite.
    """
    import torch

    found = read_tensors(path)[1]
    read = {torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32}
    if any(value.dtype not in read for value in found.values()):
        remedy = "save them as float32"
        raise RunFolderError("holds weights that are no real numbers of usual size", field=path.name, remedy=remedy)
    if not all_finite(found):
        raise RunFolderError("holds a number that is not finite", field=f"{path.parent.name}/{path.name}", remedy=_FIT)
    return found


__all__ = ["PublicFolder", "PublicWeights", "load", "read_weights"]
