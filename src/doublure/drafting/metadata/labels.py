"""Labels of SPSS (``.sav``) and Stata (``.dta``) files: types, value labels and missing codes, and no cell."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from doublure.drafting.codebook import DataDescription, Entry
from doublure.drafting.metadata.form import MetadataForm, line, listed, meaning
from doublure.errors import InputError
from doublure.schema.scalars import LONGEST_MEANING, label

_DATES = re.compile(r"(?:A|E|S|J)?DATE\d*|%t?d.*")
_MOMENTS = re.compile(r"(?:DATETIME|YMDHMS).*|%t[cC].*")
_SPELT = re.compile(r"%t([my]).*")
_DECIMALS = re.compile(r"(?:F|COMMA|DOT|N)(\d+)(?:\.(\d+))?")
_TAG = re.compile(r"\.[a-z]")
_LABELLED = "only labelled codes are listed: add those without a label"


def read(path: Path, *, form: str, reader: str) -> DataDescription:
    """Read the labels of a file.

    Args:
        path: The file.
        form: The program whose file it is.
        reader: The function of pyreadstat that reads it.

    Raises:
        InputError: pyreadstat is not installed, or the file cannot be read.
    """
    said = _metadata(path, form, reader)
    entries: dict[str, Entry] = {}
    for name in said.column_names:
        kind = str(said.original_variable_types.get(name, ""))
        stored = str(said.readstat_variable_types.get(name, "string"))
        labels = {
            _code(code, stored): line(text)[:LONGEST_MEANING]
            for code, text in said.variable_value_labels.get(name, {}).items()
        }
        gone = _missing(said.missing_ranges.get(name, []), labels)
        gone += [code for code in labels if _TAG.fullmatch(code)]
        facts, notes = _facts(
            kind, stored, [code for code in labels if code not in gone], said.variable_measure.get(name)
        )
        facts |= {"missing": gone} if gone and facts else {}
        known = {code: text for code, text in labels.items() if text}
        facts |= {"value_labels": known} if known and facts else {}
        description = meaning(said.column_names_to_labels.get(name))
        entries[name] = Entry(place=f"{path.name}, {name}", facts=facts, description=description, notes=notes)
    return DataDescription(name=path.name, form=f"the labels of {form}", entries=entries, inferred=True)


def own_labels(path: Path) -> Mapping[str, Entry]:
    """Return what a data file's own labels say of its columns, where they list codes or missing ones."""
    form = next(each for each in (SPSS, STATA) if each.recognises(path))
    return {
        name: entry
        for name, entry in form.read(path).entries.items()
        if entry.facts.keys() & {"values", "missing", "value_labels"}
    }


def _metadata(path: Path, form: str, reader: str) -> Any:
    try:
        pyreadstat = import_module("pyreadstat")
    except ImportError:
        remedy = "pip install 'doublure[files]'"
        raise InputError(
            "needs pyreadstat, which is not installed", field=f"--from {form.lower()}", remedy=remedy
        ) from None
    if not path.is_file():
        raise InputError("there is no such file", field=path, remedy=f"give the path of a file of {form}")
    try:
        return getattr(pyreadstat, reader)(str(path), metadataonly=True, user_missing=True)[1]
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, OSError, ValueError):
        raise InputError(f"is no file of {form}", field=path.name, remedy="save it again") from None


def _code(code: object, stored: str) -> str:
    """Return a code as cells have it: of numbers, a letter is one of Stata's missing ones."""
    return f".{code}" if isinstance(code, str) and stored != "string" else label(code)


def _missing(ranges: list[Mapping[str, Any]], labels: Mapping[str, str]) -> list[str]:
    """Return the codes that are declared missing: single ones, and those with a label within a range."""
    found: list[str] = []
    for each in ranges:
        lower, upper = each.get("lo"), each.get("hi")
        if lower == upper:
            found.append(label(lower))
        elif isinstance(lower, (int, float)) and isinstance(upper, (int, float)):
            found += [code for code in labels if _between(code, lower, upper)]
    return list(dict.fromkeys(found))


def _between(code: str, lower: float, upper: float) -> bool:
    try:
        return lower <= float(code) <= upper
    except ValueError:
        return False


def _facts(kind: str, stored: str, codes: list[str], measure: str | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the facts of a column: labelled codes are values, but of a scale, whose labels name ends or missing."""
    if codes and measure != "scale":
        type_ = "ordinal" if measure == "ordinal" else "category"
        return {"type": type_, "values": listed(codes)}, (_LABELLED,)
    if _MOMENTS.fullmatch(kind):
        return {"type": "datetime"}, ()
    if _DATES.fullmatch(kind):
        return {"type": "date"}, ()
    if (found := _SPELT.fullmatch(kind)) is not None:
        return {"type": "month" if found[1] == "m" else "year"}, ()
    if stored == "string":
        return {}, ()
    if stored.startswith("int"):
        return {"type": "integer"}, ()
    decimals = _DECIMALS.fullmatch(kind)
    if decimals is None:
        return ({"type": "real"} if kind.startswith("%") else {}), ()
    return ({"type": "real"} if int(decimals[2] or 0) else {"type": "integer"}), ()


def _ends_in(*endings: str) -> Callable[[Path], bool]:
    return lambda path: path.suffix.lower() in endings


SPSS = MetadataForm(
    title="a file of SPSS", read=partial(read, form="SPSS", reader="read_sav"), recognises=_ends_in(".sav", ".zsav")
)
STATA = MetadataForm(
    title="a file of Stata", read=partial(read, form="Stata", reader="read_dta"), recognises=_ends_in(".dta")
)
