"""The forms of metadata that a draft reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from doublure.drafting.codebook import DataDescription
from doublure.drafting.metadata import codebook, csvw, frictionless, labels, redcap, sdv
from doublure.drafting.metadata.form import MetadataForm
from doublure.errors import SchemaError, SettingError, printable

OWN = "codebook"
FORMS: Mapping[str, MetadataForm] = {
    OWN: codebook.FORM,
    "redcap": redcap.FORM,
    "frictionless": frictionless.FORM,
    "csvw": csvw.FORM,
    "sdv": sdv.FORM,
    "spss": labels.SPSS,
    "stata": labels.STATA,
}


def read_metadata(path: str | Path, form: str = OWN) -> DataDescription:
    """Read a description of data.

    Args:
        path: The file.
        form: One of :data:`FORMS`.

    Raises:
        InputError: The file cannot be read.
        SchemaError: It is in another form, or malformed.
        SettingError: There is no such form.
    """
    if form not in FORMS:
        raise SettingError(f"{printable(form)} is no form of metadata", field="form", remedy=f"use {', '.join(FORMS)}")
    path = Path(path)
    others = [] if FORMS[form].recognises(path) else [name for name, each in FORMS.items() if each.recognises(path)]
    if others:
        title, remedy = FORMS[others[0]].title, f"read it with --from {others[0]} {printable(path.name)}"
        raise SchemaError(f"is {title}, not {FORMS[form].title}", field=path.name, remedy=remedy)
    return FORMS[form].read(path)
