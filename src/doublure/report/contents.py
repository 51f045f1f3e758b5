"""What pages show: anything that names its page and has what this page reads. Who computes it is unknown here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

from doublure.attack.results import AttackResult, Claim
from doublure.measures.fault_tests import FaultTest
from doublure.measures.images.slices import Slice
from doublure.measures.scores import SideBySide
from doublure.results import About, Verdict


class Outcome(Protocol):
    """What every page of a run shows: whose records these are, and the outcome in plain words."""

    @property
    def about(self) -> About | None:
        """Whose records these are; None for some of unknown origin."""

    @property
    def verdict(self) -> Verdict:
        """The outcome in plain words."""

    def to_json(self) -> str:
        """Return the figures as JSON text."""


class Evaluated(Outcome, Protocol):
    """An evaluation, whatever the kind of data."""

    @property
    def page(self) -> Page:
        """The kind's."""

    @property
    def measured(self) -> Any:
        """The kind's figures."""

    @property
    def loss_lines(self) -> Sequence[str]:
        """What is said about the expected loss."""

    @property
    def attacks(self) -> Sequence[AttackResult]:
        """What attacks found."""

    @property
    def attacks_skipped(self) -> str | None:
        """Why there are none."""


class Attacked(Outcome, Protocol):
    """What attacks on one run found, or on a method."""

    page: ClassVar[Literal["audit"]]

    @property
    def internal(self) -> str:
        """That it is."""

    @property
    def claim(self) -> Claim:
        """What was claimed."""

    @property
    def attacks(self) -> Sequence[AttackResult]:
        """What each found."""

    @property
    def alarms(self) -> Sequence[AttackResult]:
        """Those that show more than is claimed."""

    @property
    def seed(self) -> int:
        """What fixed every random choice."""

    @property
    def versions(self) -> Mapping[str, str]:
        """What the figures were made with."""


class Compared(Protocol):
    """Several runs side by side."""

    page: ClassVar[Literal["comparison"]]

    @property
    def internal(self) -> str:
        """That it is."""

    @property
    def records(self) -> str:
        """What the records are called."""

    @property
    def least(self) -> str:
        """What the least to expect is called."""

    @property
    def kept_aside(self) -> bool:
        """Whether no fit has seen the records that test it."""

    @property
    def warnings(self) -> Sequence[str]:
        """What a reader has to know before any figure."""

    @property
    def asked_the_same(self) -> bool:
        """Whether all were, exactly."""

    @property
    def contenders(self) -> Sequence[object]:
        """What the template says of each: its name, its method, its claim."""

    @property
    def side_by_side(self) -> Sequence[SideBySide]:
        """The figures, each of all contenders in their order."""

    def to_json(self) -> str:
        """Return the figures as JSON text."""


class Inspected(Protocol):
    """What was found in synthetic images alone."""

    page: ClassVar[Literal["inspection"]]

    @property
    def about(self) -> About:
        """Whose images these are."""

    @property
    def against(self) -> Sequence[About]:
        """Whose images they were held against."""

    @property
    def verdict(self) -> Verdict:
        """The outcome in plain words."""

    @property
    def records(self) -> str:
        """What they are called."""

    @property
    def images(self) -> int:
        """How many were looked at."""

    @property
    def fault_tests(self) -> Sequence[FaultTest]:
        """Every way in which they can be wrong."""

    @property
    def slices(self) -> Sequence[Slice]:
        """The classes."""

    @property
    def sheet(self) -> bytes:
        """A contact sheet of the inspected images."""

    @property
    def reference_sheets(self) -> Sequence[bytes]:
        """The same of each run held against."""

    @property
    def notes(self) -> Sequence[str]:
        """What a reader has to know to read the figures right."""

    @property
    def seed(self) -> int:
        """What fixed every random choice."""

    @property
    def versions(self) -> Mapping[str, str]:
        """What the figures were made with."""

    def to_json(self) -> str:
        """Return the figures as JSON text."""


Shown: TypeAlias = Evaluated | Attacked | Compared | Inspected
"""Everything that has a page."""

Page: TypeAlias = Literal["evaluation", "images", "series", "relational", "audit", "comparison", "inspection"]
"""The pages there are; the template of each has its name."""
