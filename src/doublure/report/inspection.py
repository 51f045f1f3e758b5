"""Inspection of a run and its page, which words and lays out figures computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.access import COVERED
from doublure.errors import counted, printable
from doublure.measures.fault_tests import FaultTest
from doublure.measures.images.fault_tests import LABEL, roughness
from doublure.measures.images.slices import ClassSlice
from doublure.report import page
from doublure.report.display import outcome_html
from doublure.report.files import PageResult
from doublure.results import SynthesizerFacts, Verdict, p_value, percent, span
from doublure.support.files import Form

_NO_GUARANTEE = "No privacy guarantee. Do not publish."
_SLICED = ("label", "unlike", "alike")


class Inspection(PageResult):
    """Results of an inspection of synthetic records alone; no real record was read.

    Attributes:
        about: The inspected synthesizer.
        against: The reference synthesizers; the classifiers learned from the first.
        records: The word for the records: images, rows, series.
        images: Number of records inspected.
        fault_tests: The fault tests.
        slices: The classes of images; empty without labels.
        sheet: A contact sheet of the inspected images (PNG), for the page alone; empty for other records.
        reference_sheets: The same of each reference run.
    """

    form: ClassVar[Form] = "inspection"

    version: Literal[2] = 2
    about: SynthesizerFacts
    against: tuple[SynthesizerFacts, ...] = ()
    records: str = "images"
    images: int
    seed: int
    fault_tests: tuple[FaultTest, ...]
    slices: tuple[ClassSlice, ...]
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    sheet: bytes = Field(default=b"", exclude=True, repr=False)
    reference_sheets: tuple[bytes, ...] = Field(default=(), exclude=True, repr=False)

    @override
    def to_html(self) -> str:
        return page.render("inspection.html.j2", inspection_context(self))

    def _repr_html_(self) -> str:
        return outcome_html("Inspection", self.about, self.verdict, None)

    @property
    def found(self) -> tuple[FaultTest, ...]:
        """The faults found, the most significant first."""
        standing = [entry for entry in self.fault_tests if entry.found]
        return tuple(sorted(standing, key=lambda entry: (entry.p or 0.0, -entry.share)))

    @property
    def verdict(self) -> Verdict:
        """The inspection in words."""
        rough = roughness(self.fault_tests)
        if rough is not None:
            headline = (
                f"The reference run is too rough: {percent(rough)} of its images do not show what their label says."
            )
            remedy = "Nothing was tested. Look at both sheets, or give several correct reference runs (--against)."
            return Verdict(headline=headline, lines=(remedy,), warnings=tuple(self._warnings()))
        standing = [_sentence(entry, self.records) for entry in self.found]
        nothing = f"Nothing stands out in {self.images:,} synthetic {self.records}."
        if not self.against:
            nothing = (
                f"Nothing was tested, and nothing stands out among the {counted(self.images, 'image')} themselves."
            )
        return Verdict(
            headline=standing[0] if standing else nothing,
            lines=tuple(standing[1:]),
            warnings=tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        lost = [printable(entry.label) for entry in self.slices if entry.share == 0]
        if lost:
            yield f"No image has the label {', '.join(lost)}."
        if self.slices and not any(entry.key == LABEL for entry in self.fault_tests):
            yield "Classes were not tested: the training images have one label."
        if not self.against and self.found:
            yield (
                "Nothing was tested. Correct reference runs (--against) would tell whether this is a bug or usual for "
                "so few or such rough images."
            )
        if len(self.against) == 1 and self.found:
            yield "Two correct runs can differ as much. Several reference runs would tell whether something is wrong."

    def __str__(self) -> str:
        said = self.verdict
        return "\n".join([said.headline, *said.lines, *(f"! {line}" for line in said.warnings)])


def _sentence(entry: FaultTest, records: str) -> str:
    of_class = "" if entry.of_class is None else f" with the label {printable(entry.of_class)}"
    said = f"{percent(entry.share)} of the {records}{of_class} {entry.clause}"
    if entry.p is None:
        return f"{said}."
    several = len(entry.references) > 1
    whose = f"the worst of {len(entry.references)} reference runs" if several else "the reference run"
    return f"{said}; in {whose}, {percent(entry.reference)} ({p_value(entry.p, 'p')})."


def inspection_context(found: Inspection) -> dict[str, Any]:
    """Return the variables of an inspection's template."""
    claims = [("inspected", found.about), *(("reference", each) for each in found.against)]
    listed = [entry for entry in found.fault_tests if entry.classes and (entry.found or entry.key in _SLICED)]
    return {
        "title": f"Is something wrong with these {found.records}?",
        "records": found.records,
        "about": found.about,
        "against": len(found.against),
        "loud": None if all(claim.guarantee_kind in COVERED for _, claim in claims) else _NO_GUARANTEE,
        "claims": claims,
        "verdict": found.verdict,
        "terms": (),
        "images": found.images,
        "sheet": page.inline_png(found.sheet) if found.sheet else "",
        "reference_sheets": [page.inline_png(sheet) for sheet in found.reference_sheets],
        "entries": [_entry(entry) for entry in sorted(_shown(found.fault_tests), key=lambda entry: not entry.found)],
        "listed": [entry.clause for entry in listed],
        "slices": [_row(each, listed, bool(found.against)) for each in found.slices],
        "notes": found.notes,
        "seed": found.seed,
        "versions": found.versions,
    }


def _entry(entry: FaultTest) -> dict[str, Any]:
    return {
        "clause": entry.clause if entry.of_class is None else f"{entry.clause} (label {printable(entry.of_class)})",
        "meaning": entry.meaning,
        "share": percent(entry.share),
        "interval": span(entry.interval, shares=True),
        "reference": percent(entry.reference),
        "usual": _usual(entry),
        "p": "" if entry.p is None else p_value(entry.p),
        "found": entry.found,
    }


def _shown(fault_tests: Sequence[FaultTest]) -> list[FaultTest]:
    """Return the tests of the table: those of one class only where they find something."""
    return [entry for entry in fault_tests if entry.of_class is None or entry.found]


def _usual(entry: FaultTest) -> str:
    return "" if entry.usual is None else f"usual: {'from' if entry.fewer else 'up to'} {percent(entry.usual)}"


def _row(each: ClassSlice, listed: Sequence[FaultTest], against: bool) -> dict[str, Any]:
    shares, bright = [each.share], [each.brightness]
    if against:
        shares, bright = [*shares, each.reference or 0.0], [*bright, each.reference_brightness]
    columns = [*shares, *bright, *(entry.classes.get(each.label) for entry in listed)]
    return {"label": each.label, "cells": [percent(column) for column in columns]}
