"""The folder of a project: paths inside it, and none outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from doublure.errors import InputError, escaped

_LONGEST = 1_000
_INSIDE = "give a name inside the folder that the studio was started in"


class ProjectFolder:
    """A folder whose files can be named, and nothing outside it.

    A name is a relative path with ``/``. Links are followed, and refused where they lead out.

    Args:
        root: The folder.

    Raises:
        InputError: It is no folder.

    Example:
        >>> from doublure.studio.folder import ProjectFolder
        >>> ProjectFolder(".").path("../secret.csv")
        Traceback (most recent call last):
        ...
        doublure.errors.InputError: ../secret.csv: is outside the folder; give a name inside the folder ...
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise InputError("is no folder", field=root, remedy="give a folder, or make it first")

    def path(self, name: str) -> Path:
        """Return the path of a name, whether or not something is there.

        Raises:
            InputError: It is empty, has an invisible character, or leads outside.
        """
        if not name or len(name) > _LONGEST or escaped(name) != name or "\\" in name:
            raise InputError("is no usable name of a file", field=name or "file", remedy=_INSIDE)
        try:
            found = (self.root / name).resolve()
            found.exists()
        except (OSError, RuntimeError):  # longer than the disk takes, or a loop of links
            raise InputError("is no usable name of a file", field=name, remedy=_INSIDE) from None
        if Path(name).is_absolute() or ".." in Path(name).parts or not found.is_relative_to(self.root):
            raise InputError("is outside the folder", field=name, remedy=_INSIDE)
        return found

    def existing(self, name: str) -> Path:
        """Return the path of a file or folder that is there.

        Raises:
            InputError: As :meth:`path`, or there is none.
        """
        found = self.path(name)
        if not found.exists():
            raise InputError("is not there", field=name, remedy="choose one of the folder's files")
        return found

    def name(self, path: Path) -> str:
        """Return the name of a path inside."""
        return path.relative_to(self.root).as_posix()

    def entries(self) -> Iterator[Path]:
        """Yield what lies in the folder itself and may be named, in order of names; hidden entries are left out."""
        for entry in sorted(self.root.iterdir(), key=lambda each: each.name.lower()):
            if entry.name.startswith("."):
                continue
            try:
                self.path(entry.name)
            except InputError:
                continue
            yield entry
