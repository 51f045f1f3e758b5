"""Release: the card as it will be, the bundle or the generator, its check, and what goes to whom."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode

from doublure.errors import InputError, RunFolderError
from doublure.releasing.archive import CARD
from doublure.releasing.bundle import preview
from doublure.releasing.signing import spelt
from doublure.releasing.sizes import release_size
from doublure.releasing.verifying import is_unchanged
from doublure.releasing.writing import WRITERS
from doublure.run.loading import load
from doublure.studio import script
from doublure.studio.frames import framed, framed_file
from doublure.studio.jobs import StudioJob
from doublure.studio.project import BUNDLE
from doublure.studio.runs import done_runs, find_run, free_name, jobs_in, progress, stop
from doublure.studio.step import Page, Step
from doublure.studio.visit import FormErrors, Studio, Visit

_LICENCES = ("CC BY 4.0", "CC0 1.0", "CC BY-SA 4.0", "ODbL 1.0")
_GENERATOR = "generator"
_DOSSIER = "dossier.html"
_WORDS = {
    "csv": "CSV, for every program",
    "parquet": "Parquet, which keeps types",
    "xlsx": "Excel",
    "jsonl": "JSON lines",
    "feather": "Feather",
    "dta": "Stata",
    "sav": "SPSS",
    "npz": "NumPy",
}


def show(visit: Visit) -> Page:
    """Show the words of the release, and what has been written."""
    studio, project = visit.studio, visit.project
    run = find_run(studio, script.fitted(project))
    said = dict.fromkeys((*script.DETAILS, "generator", "rows", "formats", "tables", "spreadsheet_safe"), "")
    said |= project.answers.get("release", {})
    jobs, name = jobs_in(studio), script.released(project)
    written = jobs.latest("release", bundle=name)
    there = (studio.root / name / CARD).is_file()
    check = jobs.latest("verify", bundle=name) if there else None
    refused = check is not None and check.state == "refused"
    writer = WRITERS.get(project.kind, None)
    forms = () if writer is None else (*writer.forms, *writer.others)
    context = {
        "run": run,
        "finished": [each.name for each in done_runs(studio)],
        "said": said,
        "size": release_size(load(studio.root / run.name)) if run.state == "done" else None,
        "decided": project.answers.get("decided", {}),
        "dossier": jobs.latest("dossier", run=run.name),
        "dossier_there": (studio.root / run.name / "internal" / _DOSSIER).is_file(),
        "forms": [(form, _WORDS.get(form, form)) for form in forms],
        "usual": () if writer is None else writer.forms,
        "licences": _LICENCES,
        "saved_words": urlencode({key: said.get(key, "") for key in (*script.DETAILS, "rows")}),
        "job": written,
        "bundle": name if there else None,
        "archive": f"{name}.zip" if (studio.root / f"{name}.zip").is_file() else None,
        "fingerprint": spelt(str(_fingerprint(written))) if there and written and written.result else None,
        "check": check,
        "agreed": _agreed(studio),
        "unchanged": refused and written is not None and is_unchanged(studio.root / name, _fingerprint(written)),
    }
    return Page("release.html.j2", context)


def redrawn(visit: Visit) -> Page:
    """Return a frame of the card as it will be by what stands in the form."""
    asked = {key: visit.query.get(key, "") for key in (*script.DETAILS, "rows")}
    return Page("preview.html.j2", {"words": urlencode(asked)})


def write(visit: Visit) -> str:
    """Write the bundle or the generator."""
    studio, found = visit.studio, FormErrors()
    run = find_run(studio, script.fitted(visit.project))
    if run.state != "done":
        raise RunFolderError("is not finished", field=run.name, remedy="go on with it under Fit")
    generator = visit.text("what") == _GENERATOR
    chosen: dict[str, Any] = {key: visit.text(key) for key in script.DETAILS} | {"generator": generator}
    if not generator:
        with found.at("rows"):
            chosen["rows"] = _rows(visit)
        known = set(_WORDS)
        chosen["formats"] = [form for form in visit.lists.get("formats", ()) if form in known]
        chosen |= {key: visit.text(key) == "yes" for key in ("tables", "spreadsheet_safe")}
    found.stop()
    chosen["bundle"] = free_name(studio.root, _GENERATOR if generator else BUNDLE)
    project = visit.change(
        lambda before: before.answer("release", **chosen),
        "The release is being written.",
        undoes="what was entered for the release",
    )
    jobs_in(studio).start(script.release_words(project), bundle=chosen["bundle"])
    return "/release"


def check(visit: Visit) -> str:
    """Verify the bundle against the ledger."""
    project = visit.project
    jobs_in(visit.studio).start(script.verify_words(project), bundle=script.released(project))
    return "/release"


def card(visit: Visit) -> Any:
    """Answer the frame: the card as it will be, from what stands in the form."""
    run = find_run(visit.studio, script.fitted(visit.project))
    if run.state != "done":
        raise RunFolderError("is not finished", field=run.name, remedy="go on with it under Fit")
    query = visit.query
    rows = query.get("rows", "").replace(",", "")
    words = {key: query[key].strip() for key in script.DETAILS if query.get(key, "").strip()}
    syn = load(visit.studio.root / run.name)
    return framed(
        preview(syn, n=int(rows) if rows.isascii() and rows.isdigit() and len(rows) < 20 else syn.default_n, **words)
    )


def dossier(visit: Visit) -> str:
    """Write the privacy file of the run, which is internal."""
    project = visit.project
    jobs_in(visit.studio).start(script.dossier_words(project), run=script.fitted(project))
    return "/release"


def written_dossier(visit: Visit) -> Any:
    """Answer the frame: the privacy file."""
    return framed_file(visit.studio.folder, f"{script.fitted(visit.project)}/internal/{_DOSSIER}")


def written_card(visit: Visit) -> Any:
    """Answer the frame: the card that was written."""
    return framed_file(visit.studio.folder, f"{script.released(visit.project)}/card.html")


def archive(visit: Visit) -> Any:
    """Answer a download of the bundle as one file, once the bundle that it holds has agreed with its card."""
    from starlette.background import BackgroundTask
    from starlette.responses import PlainTextResponse, StreamingResponse

    name = f"{script.released(visit.project)}.zip"
    file = visit.studio.folder.open(name)
    agreed = _agreed(visit.studio)
    if agreed is None or _packed_card(file) != _fingerprint(agreed):
        file.close()
        return PlainTextResponse(f"{name} is not offered: its last check has not agreed; verify it under Release", 409)
    headers = {
        "content-disposition": f"attachment; filename*=utf-8''{quote(name.rpartition('/')[2])}",
        "content-length": str(os.fstat(file.fileno()).st_size),
    }
    parts = iter(lambda: file.read(2**20), b"")
    return StreamingResponse(
        parts, headers=headers, media_type="application/zip", background=BackgroundTask(file.close)
    )


def _rows(visit: Visit) -> int:
    number = visit.number("rows")
    if number < 1 or number != int(number):
        raise InputError("is not a whole number of at least 1", remedy="write one such as 5000")
    return int(number)


def done(studio: Studio) -> bool:
    """Return whether a bundle was written, and its last check agreed."""
    return _agreed(studio) is not None


def _agreed(studio: Studio) -> StudioJob | None:
    """Return the last check of the bundle, if it agreed and read the card that lies there now."""
    name = script.released(studio.project)
    card = studio.root / name / CARD
    check = jobs_in(studio).latest("verify", bundle=name) if card.is_file() else None
    if check is None or check.state != "done" or _fingerprint(check) != _sha256(card.read_bytes()):
        return None
    return check


def _fingerprint(job: StudioJob) -> object:
    """Return the fingerprint of the card that a command wrote or read; None where it tells none."""
    return job.result.get("fingerprint")


def _packed_card(file: BinaryIO) -> str | None:
    """Return the fingerprint of the card in an archive, and leave the file at its beginning; None where it has none."""
    try:
        with zipfile.ZipFile(file) as archive:
            cards = [name for name in archive.namelist() if name.count("/") == 1 and name.endswith(f"/{CARD}")]
            return _sha256(archive.read(cards[0])) if len(cards) == 1 else None
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, zlib.error):
        return None
    finally:
        file.seek(0)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


STEP = Step(
    key="release",
    title="Release",
    show=show,
    takes={
        "write": write,
        "check": check,
        "dossier": dossier,
        "stop": lambda visit: stop(visit, "/release"),
    },
    parts={
        "progress": progress,
        "preview": redrawn,
        "card": card,
        "written": written_card,
        "file": written_dossier,
        "archive": archive,
    },
    same=script.release,
    done=done,
)
