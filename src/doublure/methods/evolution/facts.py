"""Facts about public candidates: their kind, name and hash, which a plan pins, and their provenance."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias

from doublure.errors import RunFolderError, SettingError
from doublure.guarantee import NO_SHARED_PEOPLE, PUBLIC_CANDIDATES, SHARED_PEOPLE
from doublure.public.facts import Provenance, Sha256
from doublure.public.folder import FACTS, load
from doublure.public.part import as_text
from doublure.schema.fact_states import Frozen
from doublure.support.tensors import sha256_of

Propose: TypeAlias = Callable[..., Any]

_FUNCTION = re.compile(r"[\w.]+:[\w.]+")
_FIELD = "candidates"


class CandidateFacts(Frozen):
    """A public source of candidates.

    Attributes:
        source: Public images, a public generator (``doublure public fit``), or a Python function.
        name: The file's or folder's name without its path, or ``module:function``.
        sha256: Hash of the images' files, of the generator's weights, or of the function's source file.
        provenance: The origin of its data; None if it is not stated.
    """

    source: Literal["images", "generator", "function"]
    name: str
    sha256: Sha256
    provenance: Provenance | None = None

    @classmethod
    def of(cls, candidates: str, provenance: Provenance | None) -> CandidateFacts:
        """Return the facts of a source, whose files are read.

        Args:
            candidates: A path of images, the folder of a public generator, or ``module:function``.
            provenance: As said with the settings; a public generator has its own.

        Raises:
            SettingError: There is no such source.
        """
        path = Path(candidates.partition("#")[0])
        if not path.exists():
            if not _FUNCTION.fullmatch(candidates):
                remedy = "give a folder or file of public images, the folder of a public generator, or module:function"
                raise SettingError("are not there", field=_FIELD, remedy=remedy)
            return cls(source="function", name=candidates, sha256=_source_sha256(candidates), provenance=provenance)
        if not (path / FACTS).is_file():
            name = path.resolve().name + candidates[len(candidates.partition("#")[0]) :]
            return cls(source="images", name=name, sha256=_files_sha256(path), provenance=provenance)
        try:
            found = load(path)
        except RunFolderError as error:
            raise SettingError(f"{error.field} {error.message}", field=_FIELD, remedy=error.remedy) from None
        if provenance is not None:
            raise SettingError("is that of the public generator", field="provenance", remedy="leave it out")
        name = path.resolve().name
        return cls(source="generator", name=name, sha256=found.generator_sha256, provenance=found.provenance)

    @property
    def line(self) -> str:
        """One line for a card: kind, name, hash and provenance."""
        said = "of unstated origin" if self.provenance is None else f"from {self.provenance.line}"
        return f"Public candidates, {self.source} {self.name}, SHA-256 {self.sha256}, {said}"

    @property
    def shared_people(self) -> bool:
        """Whether people of the public data may be among the private records."""
        return self.provenance is None or self.provenance.shared_people == "possible"

    def assumptions(self, extractor: str) -> tuple[str, ...]:
        """Return the assumptions of a claim that was made with these candidates and an extractor."""
        what = f"{self.source}, SHA-256 {self.sha256[:12]}…"
        made = f"{PUBLIC_CANDIDATES} ({what}) and {extractor} were made and chosen without the private records"
        return (made,) if self.shared_people else (made, NO_SHARED_PEOPLE)

    @property
    def excluded(self) -> tuple[str, ...]:
        """Exclusions from such a claim."""
        return (SHARED_PEOPLE,) if self.shared_people else ()


def named(given: object) -> object:
    """Return the name ``module:function`` of a function, and a path as text.

    Raises:
        ValueError: It is a function that no module names.
    """
    if not callable(given) or inspect.isclass(given):
        return as_text(given)
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if not module or not name or "<" in name:
        raise ValueError("must be a function that its module names: write it with def, outside others")
    return f"{module}:{name}"


def import_function(name: str) -> Propose:
    """Return the function of this name.

    Raises:
        SettingError: It cannot be imported, or is no function.
    """
    try:
        found = resolve_name(name)
    except Exception as error:  # the module is the user's, and may raise anything
        remedy = "give module:function, with the module's folder on PYTHONPATH"
        raise SettingError(f"{name} cannot be imported ({type(error).__name__})", field=_FIELD, remedy=remedy) from None
    if not callable(found):
        raise SettingError(f"{name} is no function", field=_FIELD, remedy="give module:function")
    proposes: Propose = found
    return proposes


def _source_sha256(name: str) -> str:
    function = import_function(name)
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
        if file is not None and Path(file).is_file():
            return sha256_of(Path(file))
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):
        remedy = "write it into a file, as def"
        raise SettingError(f"{name} has no source, which the plan pins", field=_FIELD, remedy=remedy) from None


def _files_sha256(path: Path) -> str:
    """Return a hash of a file, or of the names and contents of all files in a folder."""
    if path.is_file():
        return sha256_of(path)
    found = hashlib.sha256()
    for file in sorted(each for each in path.rglob("*") if each.is_file()):
        found.update(f"{file.relative_to(path).as_posix()}\n{sha256_of(file)}\n".encode())
    return found.hexdigest()
