"""Capabilities of this machine, and problems that would stop a run."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from doublure._version import __version__
from doublure.data.databases.address import COMPILED, RUN

_LIBRARIES = (
    "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "dp-accounting",
    "opendp", "pydantic", "safetensors", "matplotlib", "pillow",
)  # fmt: skip
_OPTIONAL = {
    "torch": "images, networks and GANs need it: pip install 'doublure[torch]'",
    "python-calamine": "Excel and OpenDocument files need it: pip install 'doublure[files]'",
    "pyreadstat": "Stata, SPSS and SAS files need it: pip install 'doublure[files]'",
    "xlsxwriter": "samples as .xlsx need it: pip install 'doublure[files]'",
    "sqlglot": "counting in databases needs it: pip install 'doublure[sql]'",
    "duckdb": "duckdb:// needs it: pip install 'doublure[sql]'",
    "psycopg": "postgresql:// needs it: pip install 'doublure[sql]'",
    "starlette": "doublure studio needs it: pip install 'doublure[studio]'",
    "uvicorn": "doublure studio needs it: pip install 'doublure[studio]'",
}
"""Library of an extra -> what needs it."""
_SMALL_DISK = 1_000_000_000


def examine(folder: Path | None = None) -> dict[str, Any]:
    """Return versions, threads, devices, the entropy source, and the problems found.

    Args:
        folder: Searched for interrupted runs that left encoded records behind; None: no search.
    """
    problems: list[str] = []
    return {
        "doublure": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: _version(name, problems) for name in _LIBRARIES}
        | {name: _installed(name) for name in _OPTIONAL},
        "databases": {"run": list(RUN), "compiled": list(COMPILED)},
        "cpus": os.cpu_count(),
        "threads": _threads(),
        "devices": _devices(),
        "entropy": _entropy(problems),
        "private_statistics": _opendp(problems),
        "ledger": _locking(problems),
        "disk_free_bytes": _disk(problems),
        "left_behind": [] if folder is None else [str(path) for path in left_behind(folder)],
        "problems": problems,
    }


def left_behind(folder: Path) -> list[Path]:
    """Return the encoded records that interrupted runs left in a folder or its subfolders, to be resumed or removed.

    Those of a process that was killed while it wrote them are included.
    """
    names = ("codes", ".codes.*.part")
    return sorted(
        {path for below in ("", "*/", "*/*/") for name in names for path in folder.glob(f"{below}internal/{name}")}
    )


def describe(found: dict[str, Any]) -> str:
    """Return the examination in lines."""
    lines = [f"doublure {found['doublure']}, Python {found['python']} on {found['platform']}"]
    lines += [f"  {name:<16} {version or _absent(name)}" for name, version in found["libraries"].items()]
    run, compiled = (", ".join(found["databases"][key]) for key in ("run", "compiled"))
    lines.append(f"  {'databases':<16} {run}; SQL of {compiled} is compiled, and was never run")
    lines.append(f"  {'processors':<16} {found['cpus']}, of which {found['threads']} are used")
    lines.append(f"  {'devices':<16} {', '.join(found['devices'])}")
    lines.append(f"  {'entropy':<16} {found['entropy']}")
    lines.append(f"  {'statistics':<16} {found['private_statistics']}")
    lines.append(f"  {'ledger':<16} {found['ledger']}")
    lines.append(f"  {'free disk':<16} {found['disk_free_bytes'] / 1e9:.1f} GB")
    remedy = "holds the records of a run that was cut off: go on with fit --resume, or remove it"
    lines += [f"Left behind: {path} {remedy}" for path in found["left_behind"]]
    lines += [f"Would not work: {problem}" for problem in found["problems"]]
    if not found["problems"]:
        lines.append("Everything works.")
    return "\n".join(lines)


def _version(name: str, problems: list[str]) -> str | None:
    found = _installed(name)
    if found is None:
        problems.append(f"{name} is not installed; pip install {name}")
    return found


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _absent(name: str) -> str:
    """Return the line of a library that is not installed, which may be optional."""
    return f"not installed; {_OPTIONAL[name]}" if name in _OPTIONAL else "missing"


def _threads() -> int:
    import numpy as np  # loads the BLAS whose threads are counted
    from threadpoolctl import threadpool_info

    del np
    return max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)


def _devices() -> list[str]:
    try:
        import torch
    except ImportError:
        return ["cpu"]
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [f"cuda:{place} ({torch.cuda.get_device_name(place)})" for place in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    return devices


def _entropy(problems: list[str]) -> str:
    try:
        os.urandom(32)
    except NotImplementedError:
        problems.append("the operating system has no entropy source; no private run can be made")
        return "none"
    return "os.urandom (getrandom)" if sys.platform == "linux" else "os.urandom"


def _opendp(problems: list[str]) -> str:
    try:
        from doublure.private import whole_noise

        whole_noise.laplace([100], epsilon=1.0, moved=1)
    except Exception:
        problems.append("OpenDP does not run; facts cannot be learned")
        return "broken"
    return "exact discrete noise through OpenDP"


def _locking(problems: list[str]) -> str:
    try:
        import fcntl

        with tempfile.TemporaryFile() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        problems.append("files cannot be locked here; a ledger cannot be kept")
        return "no file locking"
    return "file locking and fsync"


def _disk(problems: list[str]) -> int:
    import shutil

    free = shutil.disk_usage(Path.cwd()).free
    if free < _SMALL_DISK:
        problems.append("less than 1 GB of disk is free; runs may end early")
    return free
