"""Received a bundle: it is unpacked, checked, and explored, without anything private."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlencode

from doublure.errors import DoublureError, InputError, escaped
from doublure.releasing.archive import CARD, unpack
from doublure.releasing.exploring import ReceivedTable
from doublure.releasing.signing import spelt
from doublure.studio.frames import framed, page_of
from doublure.studio.jobs import StudioJob
from doublure.studio.project import Project
from doublure.studio.runs import free_name, jobs_in, progress, stop
from doublure.studio.script import Same, command, operand
from doublure.studio.step import Page, Step
from doublure.studio.visit import FormErrors, Studio, Visit
from doublure.support import files

_ROOM, _PAGE = "received", "card.html"
_CONDITIONS = 3
_SHOWN_ROWS = 20


def show(visit: Visit) -> Page:
    """Show how to open a bundle; or one that was opened, its check, its card and its rows."""
    studio, name = visit.studio, visit.query.get("bundle", "")
    context: dict[str, Any] = {"bundles": _bundles(studio), "name": name, "job": None, "verified": False}
    context |= {
        "ledgers": _named(studio, ".ledger"),
        "keys": _named(studio, ".pub"),
        "archives": _named(studio, ".zip"),
    }
    if name:
        path = _bundle(studio, name)
        job = jobs_in(studio).latest_own("verify", received=name)
        fingerprint = _fingerprint(path)
        verified = job is not None and _is_of(job, fingerprint)
        context |= {"job": job, "verified": verified, "result": {} if job is None else job.result}
        context["words"] = urlencode({"bundle": name})
        context["fingerprint"] = spelt(fingerprint)
        context["same"] = _same(visit, name, job)
        context |= _explored(visit, path) if verified else {}
    return Page("received.html.j2", context)


def take(visit: Visit) -> str:
    """Open a bundle: an archive that was dropped in or lies in the folder, or a folder there."""
    studio, found = visit.studio, FormErrors()
    with found.at("archive_file"):
        if "archive_file" in visit.uploads:
            given, content = visit.uploads["archive_file"]
            name = _opened(studio, given, content)
        elif visit.text("archive"):
            path = studio.folder.existing(visit.text("archive"))
            name = _opened(studio, path.name, path) if path.is_file() else studio.folder.name(path)
            _bundle(studio, name)
        else:
            raise InputError("no bundle is chosen", remedy="drop its ZIP file in, or choose one of the folder")
    found.stop()
    studio.status = "Unpacked. It is being checked."
    return _verified(visit, name)


def check(visit: Visit) -> str:
    """Check an opened bundle again, with a ledger or the publisher's key if they are at hand."""
    name = visit.text("bundle")
    _bundle(visit.studio, name)
    return _verified(visit, name)


def _verified(visit: Visit, name: str) -> str:
    folder, beside = visit.studio.folder, []
    for field in ("ledger", "key"):
        if visit.text(field):
            beside += [f"--{field}", operand(folder.name(folder.existing(visit.text(field))))]
    jobs_in(visit.studio).start(["verify", operand(name), *beside], received=name)
    return f"/received?{urlencode({'bundle': name})}"


def _opened(studio: Studio, given: str, content: BinaryIO | Path) -> str:
    """Unpack an archive into a folder of its own, and return that folder's name."""
    stem = "".join(char if char.isalnum() or char in "-_" else "-" for char in given.rpartition(".")[0])[:60].strip("-")
    room = studio.folder.room(_ROOM)
    name = free_name(room, stem if stem.isascii() and stem else "bundle")
    if isinstance(content, Path):
        unpack(content, room / name)
        return f"{_ROOM}/{name}"
    kept = room / f".{name}.zip"
    try:
        files.write_atomic(kept, lambda file: shutil.copyfileobj(content, file), mode=0o600)
        unpack(kept, room / name)
    except DoublureError as error:  # names the user's file, and not ours
        raise type(error)(error.message, field=_seen(error.field, kept, given), remedy=error.remedy) from None
    finally:
        kept.unlink(missing_ok=True)
    return f"{_ROOM}/{name}"


def _seen(field: str | None, kept: Path, given: str) -> str | None:
    return escaped(given) if field in (str(kept), kept.name) else field


def _bundle(studio: Studio, name: str) -> Path:
    path = studio.folder.existing(name)
    if not (path / CARD).is_file():
        raise InputError("is not a bundle", field=name, remedy="drop the ZIP file in as it was received")
    return path


def _bundles(studio: Studio) -> list[str]:
    inside = [studio.root, studio.root / _ROOM]
    found = [each for room in inside if room.is_dir() for each in sorted(room.iterdir()) if not each.is_symlink()]
    return [studio.folder.name(each) for each in found if each.name[0] != "." and (each / CARD).is_file()]


def _named(studio: Studio, ending: str) -> list[str]:
    return [each.name for each in studio.folder.entries() if each.is_file() and each.name.endswith(ending)]


def _fingerprint(path: Path) -> str:
    return _sha256((path / CARD).read_bytes())


def _is_of(job: StudioJob, fingerprint: str) -> bool:
    """Whether a check passed, and read a card of this fingerprint."""
    return job.result.get("fingerprint") == fingerprint


# -- exploring: counts of what the bundle holds ------------------------------------------------------------------------


def _explored(visit: Visit, path: Path) -> dict[str, Any]:
    tables = {table.name: table for table in ReceivedTable.of_bundle(path)}
    if not tables:
        return {"tables": [], "table": None}
    query = visit.query
    table = tables.get(query.get("table", "")) or next(iter(tables.values()))
    names, trouble = list(table.columns), None
    shown = query.get("column", "")
    told = (name for name, column in table.columns.items() if not column.model.identifies)
    shown = shown if shown in table.columns else next(told, names[0])  # an id is counted once each
    found: dict[str, Any] = {"count": None, "bars": [], "rows": []}
    try:
        where = _where(query)
        found = {
            "count": table.count(where),
            "bars": table.distribution(shown, where),
            "rows": [list(row.values()) for row in table.rows(where, _SHOWN_ROWS)],
        }
    except DoublureError as error:
        trouble = str(error)
    return {
        "tables": list(tables),
        "table": table.name,
        "columns": names,
        "column": shown,
        "query": {
            f"{key}{number}": query.get(f"{key}{number}", "")
            for key in ("where", "is")
            for number in range(_CONDITIONS)
        },
        "numbers": range(_CONDITIONS),
        "trouble": trouble,
        "top": max((bar.share for bar in found["bars"]), default=0) or 1,
        **found,
    }


def _where(query: Any) -> dict[str, object]:
    """Return the conditions that stand in the address: of each a column, and a value, two ends, or nothing."""
    found: dict[str, object] = {}
    for number in range(_CONDITIONS):
        name, text = query.get(f"where{number}", ""), query.get(f"is{number}", "").strip()
        if not name:
            continue
        if name in found:
            raise InputError("is asked for twice", field=name, remedy="ask for it once")
        low, dots, high = text.partition("..")
        if dots:
            found[name] = (low.strip() or None, high.strip() or None)
        elif "|" in text:
            found[name] = [part.strip() for part in text.split("|")]
        else:
            found[name] = text or None
    return found


def card(visit: Visit) -> Any:
    """Answer the frame: the card of a bundle that passed its check."""
    studio, name = visit.studio, visit.query.get("bundle", "")
    _bundle(studio, name)
    job = jobs_in(studio).latest_own("verify", received=name)
    listed, shown = (page_of(studio.folder, f"{name}/{file}") for file in (CARD, _PAGE))
    if job is None or not _is_of(job, _sha256(listed)) or _sha256(shown) not in _hashes(listed):
        raise InputError("has not passed its check", field="bundle", remedy="check it first")
    return framed(shown)  # the bytes that were looked at: the file may be another by now


def _hashes(card: bytes) -> set[str]:
    """Return the hash of the page, as a card that passed its check lists it."""
    return {entry["sha256"] for entry in json.loads(card)["files"] if entry["path"] == _PAGE}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def same(project: Project) -> Same | None:
    """Return nothing: what a bundle is checked and counted by depends on the one that is shown."""
    return None


def _same(visit: Visit, name: str, job: StudioJob | None) -> Same:
    """Return how the bundle that is shown is checked, and its rows counted."""
    words = ["verify", operand(name)] if job is None else job.arguments
    beside = dict(zip(words[2::2], words[3::2], strict=True))
    told = "".join(f", {key.removeprefix('--')}={said!r}" for key, said in beside.items())
    python = f"import doublure as db\n\nprint(db.verify({name!r}{told})['origin'])"
    try:
        where = _where(visit.query)
    except InputError:
        where = {}
    table = visit.query.get("table", "")
    of = f"next(each for each in tables if each.name == {table!r})" if table else "tables[0]"
    python += (
        "\n\nfrom doublure.releasing.exploring import ReceivedTable\n\n"
        f"tables = ReceivedTable.of_bundle({name!r})\n"
        f"if tables:\n    print({of}.count({where!r}).sentence)"
    )
    return Same(command(*words), python)


def done(studio: Studio) -> bool:
    """Return whether a received bundle was checked: never needed to go on."""
    return False


STEP = Step(
    key="received",
    title="Received a bundle?",
    aside=True,
    show=show,
    takes={"take": take, "check": check, "stop": lambda visit: stop(visit, "/received")},
    parts={"progress": progress, "card": card},
    same=same,
    done=done,
)
