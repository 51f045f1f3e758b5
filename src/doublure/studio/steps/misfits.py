"""Misfits, for the owner of the data: the only screen that reads records."""

from __future__ import annotations

from typing import Any

from doublure.data.databases.address import url_scheme
from doublure.drafting.form_hints import FormHint, form_hint
from doublure.drafting.metadata.codebook import words_of
from doublure.drafting.metadata.own_words import said_missing
from doublure.drafting.misfits import MisfitReason, Seen, list_misfits, mostly
from doublure.drafting.owner_notes import NOTES
from doublure.errors import DataError, InputError, SettingError, printable
from doublure.schema import Schema
from doublure.studio.project import Project
from doublure.studio.visit import Visit

FILE = "misfits.csv"
_REFUSE, _COERCE = "refuse", "coerce"


def context(visit: Visit) -> dict[str, Any]:
    """Return what was found last; nothing before it was asked for, or once something was changed."""
    found = visit.studio.found
    return {
        "misfits": found[1] if found is not None and found[0] == visit.project.version else None,
        "misfits_file": FILE,
        "misfit": visit.project.keys.get("misfit", _REFUSE),
    }


def look(visit: Visit) -> str:
    """Write every cell that does not fit into a file that only its owner can read, and count them by column."""
    project = visit.project
    if visit.text("owner") != "yes":
        remedy = "tick it if the data is yours to look at"
        raise SettingError("only the owner of the data may look at it", field="owner", remedy=remedy)
    if project.source is None:
        raise InputError("no data is chosen", field="data", remedy="choose it first")
    if url_scheme(project.source.place) is not None:
        remedy = "a fit counts in the database what does not fit, and names the columns"
        raise DataError("is a database, whose cells stay there", field="data", remedy=remedy)
    schema, data = visit.studio.schema(project), str(visit.studio.folder.part(project.source.place))
    notes = NOTES[schema.kind](schema, data)
    seen = Seen()
    counts = list_misfits(schema, data, visit.studio.folder.path(FILE), notes=notes, force=True, seen=seen)
    coerced = schema.misfit == _COERCE
    rows = [
        (
            each.column,
            each.why,
            number,
            _becomes(each.reason, coerced=coerced),
            _hint(visit, schema, each.column, each.reason) if each.reason.unread else None,
        )
        for each, number in counts.items()
    ]
    visit.studio.found = (project.version, {"rows": rows, "notes": [each.line for each in notes]})
    total = sum(counts.values())
    visit.studio.status = f"{total:,} {'cell does' if total == 1 else 'cells do'} not fit."
    if most := mostly(counts, seen):
        named = ", ".join(map(printable, most))
        visit.studio.status += f" In most records {named} does not: a fit would spend ε on noise. Fix it first."
    return "/columns#misfits"


def _becomes(reason: MisfitReason, *, coerced: bool) -> str:
    """Return what a fit does with what does not fit, as the third person of a verb."""
    if not coerced and not reason.tolerated:
        return "is refused"
    return "leaves it out" if reason is MisfitReason.UNIT else "takes it"


def _hint(visit: Visit, schema: Schema, name: str, reason: MisfitReason) -> FormHint | None:
    """Return how another form of a column's cells is declared, by public words alone; None without a hint."""
    column = schema.columns.get(name)
    if column is None:
        return None
    words = public_words(visit, name)
    known = column.missing if isinstance(column.missing, tuple) else ("",)
    own = visit.project.column(name)
    facts = {} if own is None else own.facts
    gone = [*dict.fromkeys(text for each in words for text in said_missing(each, facts) if text not in known)]
    if gone:
        line = f"public words of it say that {', '.join(gone)} stands for a missing cell"
        return FormHint(line, "missing", "|".join((*known, *gone)))
    fractions = reason is MisfitReason.FRACTION
    found = form_hint(column, schema.cell_form.marks, words, fractions=fractions)
    return found if found.line else None


def public_words(visit: Visit, name: str) -> tuple[str, ...]:
    """Return the public texts about a column: its description, what was not read of its codebook, and its row."""
    project, words = visit.project, tuple[str, ...]()
    if (column := project.column(name)) is not None:
        words = (str(column.facts.get("description", "")), *column.unread)
    if project.codebook is not None:
        words += words_of(visit.studio.folder.part(project.codebook), project.own_name(name))
    return words


def decide(visit: Visit) -> str:
    """Keep what becomes of cells that do not fit."""
    chosen = visit.text("misfit")
    if chosen not in (_REFUSE, _COERCE):
        raise SettingError("is not chosen", field="misfit", remedy="choose one of the two")

    def by(before: Project) -> Project:
        rest = {key: said for key, said in before.keys.items() if key != "misfit"}
        return before.changed(keys=rest | ({"misfit": chosen} if chosen == _COERCE else {}))

    said = "A fit is refused for what does not fit." if chosen == _REFUSE else "A fit makes fit what does not."
    visit.change(by, said, undoes="what becomes of cells that do not fit")
    return "/columns#misfits"


TAKES = {"misfits": look, "misfit": decide}
