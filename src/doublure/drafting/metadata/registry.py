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

_MISSHAPEN = (TypeError, AttributeError, KeyError)
"""The errors of reading a list where a text belongs, and the like: JSON may hold anything."""


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
    try:
        return FORMS[form].read(path)
    except _MISSHAPEN:
        what = f"is not {FORMS[form].title}: a part of it has another shape"
        raise SchemaError(what, field=path.name, remedy="export it again") from None
