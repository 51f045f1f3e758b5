"""The sheets of a workbook, as names that can be chosen; no cell is looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from doublure.data.tables.containers.registry import find_container
from doublure.errors import InputError
from doublure.studio.folder import ProjectFolder

_READS = """
import json, os, sys
if os.name == "posix":
    import resource
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.path[:] = sys.argv[2:]
from python_calamine import CalamineWorkbook
print(json.dumps(list(CalamineWorkbook.from_path(sys.argv[1]).sheet_names)))
"""
_LONGEST_S = 20


def with_sheets(folder: ProjectFolder, path: Path) -> list[str]:
    """Return the names by which a file is chosen: of a workbook of several sheets one for each, else its own."""
    container = find_container(path)
    if container is None or not container.sheets or not path.is_file() or find_spec("python_calamine") is None:
        return [path.name]
    seen = path.stat()
    found = _sheets(path, seen.st_mtime_ns, seen.st_size)
    return [name for sheet in found if _is_usable(folder, name := f"{path.name}#{sheet}")] or [path.name]


def _is_usable(folder: ProjectFolder, name: str) -> bool:
    try:
        folder.part(name)
    except InputError:
        return False
    return True


@lru_cache(maxsize=256)
def _sheets(path: Path, changed: int, size: int) -> tuple[str, ...]:
    """Return the sheets of a workbook of several; nothing of one that cannot be read, which choosing it tells.

    A process of its own reads it: the library ends the one in which a vast workbook takes all memory.
    """
    words = [sys.executable, "-I", "-S", "-c", _READS, str(path), *filter(None, sys.path)]
    try:
        told = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_LONGEST_S)
        names = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()
    return tuple(names) if len(names) > 1 else ()
