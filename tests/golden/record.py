"""Record what every golden fit leaves behind, to be compared byte for byte with what it leaves after a change.

::

    python tests/golden/record.py before            # every case: plan, run, digests, 1,000 rows, card, report, texts
    python tests/golden/record.py before NAME …     # these cases alone
    python tests/golden/record.py before --texts tests/schema tests/data    # every refusal that these tests meet
    diff -r before after
    python tests/golden/record.py --keep            # write the kept files of the suite anew
    python tests/golden/record.py --keep NAME …     # those of these cases alone

One machine and one environment: last bits hang on both. Cases that fail are recorded as what they fail with.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import pytest
import remembered
from fixed_noise import FixedNoise
from golden.recording import record

from golden import cases, drafts, portable, refused, texts

_BESIDE = ("refusals", "drafts")
"""Kept files of no fit."""


def main() -> None:
    """Read the command line and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="where to write; it may not exist")
    parser.add_argument("names", nargs="*", help="cases; all if left out")
    parser.add_argument("--keep", action="store_true", help="write the kept files of the suite anew")
    parser.add_argument("--texts", nargs="+", metavar="TESTS", help="record every refusal that these tests meet")
    asked = parser.parse_args()
    if asked.keep and asked.folder is not None:  # nothing is recorded into a folder: all words are cases
        asked.names = [str(asked.folder), *asked.names]
    known = [*cases.CASES, *(_BESIDE if asked.keep else ())]
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"no case is named {', '.join(unknown)}; there are {', '.join(known)}")
    fits = [name for name in asked.names if name in cases.CASES]
    if asked.keep and (others := [name for name in fits if not cases.CASES[name].kept]):
        parser.error(f"the suite keeps no file of {', '.join(others)}: record before and after, and compare")
    cases.register()
    if asked.keep:
        _keep(asked.names)
        return
    if asked.folder is None:
        parser.error("name a folder, or --keep")
    if asked.texts:
        sys.exit(texts.record(asked.folder / "texts.txt", asked.texts))
    remembered.install()
    for name in asked.names or cases.CASES:
        begun = time.process_time()
        for file, text in _found(name).items():
            _write(asked.folder / name / file, text)
        print(f"{name}: {time.process_time() - begun:.1f} s", flush=True)
    if not asked.names:
        _write(asked.folder / "refusals.jsonl", "".join(f"{line}\n" for line in refused.lines()))
        for file, text in drafts.record().items():
            _write(asked.folder / "drafts" / file, text)


def _found(name: str, **more: object) -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        noise = FixedNoise()
        noise.install(patch)
        patch.chdir(folder)
        try:
            return record(cases.CASES[name], Path(folder), **more)  # type: ignore[arg-type]
        except Exception as error:  # what a case fails with is its record
            return {"failed.txt": f"{type(error).__name__}: {error}\n".replace(folder, "…")}


def _keep(names: list[str]) -> None:
    for name in names or [*(name for name, case in cases.CASES.items() if case.kept), *_BESIDE]:
        if name == "refusals":
            refused.keep([{**line, "said": refused.said(line)} for line in refused.table()])
        elif name == "drafts":
            drafts.keep(drafts.record())
        else:
            portable.keep(name, _found(name, rows=portable.ROWS, evaluated=name == portable.EVALUATED))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
