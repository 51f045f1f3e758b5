"""Shared parts of internal results: provenance, the verdict in plain words, and the format of figures.

An internal result is computed on real data. It says so in its JSON, where it is printed, and on its page.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from abc import abstractmethod
from importlib import metadata
from typing import Any, Self

from pydantic import model_validator
from typing_extensions import override

from doublure._version import __version__
from doublure.intervals import Interval, Result

INTERNAL = "computed on real data: do not publish"
_TINY_P = 1e-15
_DIGEST = "sha256"


class SynthesizerFacts(Result):
    """The synthesizer whose records were evaluated, and its claim.

    ``generator_sha256`` is that of its run's generator; null for one that lies in no run folder.
    """

    method: str
    guarantee_kind: str
    guarantee: str
    unit: str
    schema_sha256: str
    created: str
    generator_sha256: str | None = None


class MeanInterval(Result):
    """The mean of a column by the noisy tables, and by synthetic rows that are taken for real ones.

    Attributes:
        column: The column.
        value: The mean by the noisy tables.
        low: Lower end of its interval of 95 %.
        high: Upper end.
        naive_low: Lower end of the interval by synthetic rows alone, which is too narrow.
        naive_high: Upper end.
        real: The mean of the real rows.
    """

    column: str
    value: float
    low: float
    high: float
    naive_low: float
    naive_high: float
    real: float

    @property
    def holds(self) -> bool:
        """Whether the real mean lies in the interval."""
        return self.low <= self.real <= self.high

    @property
    def shown(self) -> tuple[str, ...]:
        """The mean, both ends, both naive ends and the real mean, as far as the interval tells their digits.

        The mean is shown within its interval, which ends at what is possible.
        """
        reach = (self.high - self.low) / 2
        digits = max(0, 1 - math.floor(math.log10(reach))) if reach > 0 else 5
        value = min(max(self.value, self.low), self.high)
        figures = (value, self.low, self.high, self.naive_low, self.naive_high, self.real)
        return tuple(f"{each:,.{digits}f}".replace("-", "−") for each in figures)

    @property
    def naive_holds(self) -> bool:
        """Whether it lies in the naive one."""
        return self.naive_low <= self.real <= self.naive_high


class Verdict(Result):
    """The outcome in plain words, for a reader who stops there.

    Attributes:
        headline: One sentence.
        lines: The figures behind it.
        warnings: Faults that were found.
    """

    headline: str
    lines: tuple[str, ...]
    warnings: tuple[str, ...]


class WasEdited(Exception):
    """A file of figures that is not as it was written, or that was written before such files ended with a digest."""


def _digest(written: dict[str, Any]) -> str:
    """Return the SHA-256 of a JSON object, however it is laid out."""
    plain = json.dumps(written, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


class Document(Result):
    """A result that is written to a file of its own."""

    def to_json(self) -> str:
        """Return JSON text; unknown figures are null."""
        return self.model_dump_json(indent=1)

    def file_text(self) -> str:
        """Return the text of its file: JSON, of an internal result with its own SHA-256 at the end."""
        return self.to_json()


class InternalReport(Document):
    """A result that is computed on real data and kept inside: a page, and its figures.

    Attributes:
        about: The synthesizer of the records; null for records of unknown origin.
    """

    about: SynthesizerFacts | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_digest(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if key != _DIGEST} if isinstance(given, dict) else given

    @override
    def file_text(self) -> str:
        written = json.loads(self.to_json())
        return json.dumps({**written, _DIGEST: _digest(written)}, ensure_ascii=False, indent=1)

    @classmethod
    def read(cls, content: bytes) -> Self:
        """Read a file that holds :meth:`file_text`.

        Raises:
            ValueError: It is no such result.
            WasEdited: It is one, and not as it was written.
        """
        try:
            written = json.loads(content)
        except RecursionError:
            raise ValueError("nests too deeply") from None
        found = cls.model_validate(written)
        if written.pop(_DIGEST, None) != _digest(written):
            raise WasEdited
        return found

    @property
    @abstractmethod
    def verdict(self) -> Verdict:
        """The outcome in plain words."""

    @property
    def further_lines(self) -> tuple[str, ...]:
        """Lines after those of the verdict."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({INTERNAL})"

    def __str__(self) -> str:
        said = self.verdict
        warnings = (f"! {line}" for line in said.warnings)
        return "\n".join([f"INTERNAL: {INTERNAL}", said.headline, *said.lines, *self.further_lines, *warnings])


def versions() -> dict[str, str]:
    """Return the versions of the libraries that figures are made with."""
    found = {"doublure": __version__, "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in ("numpy", "pandas", "scikit-learn")}


# -- figures in words ------------------------------------------------------------------------------------------------


def percent(share: float | None, digits: int = 1) -> str:
    r"""Return a share as a percentage; a dash where it is not known.

    Example:
        >>> percent(0.8516)
        '85.2\xa0%'
    """
    return "–" if share is None else f"{100 * share:.{digits}f}\u00a0%"


def points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    Example:
        >>> points(-0.054)
        '−5.4'
    """
    return f"{100 * share:+.1f}".replace("-", "−")


def span(ends: Interval | None, *, shares: bool = False) -> str:
    r"""Return an interval as text, that of shares in percent; or nothing.

    Example:
        >>> span((0.0931, 0.12)), span((0.0931, 0.12), shares=True)
        ('0.093 to 0.120', '9.3 to 12.0\xa0%')
    """
    if ends is None:
        return ""
    return f"{100 * ends[0]:.1f} to {100 * ends[1]:.1f}\u00a0%" if shares else f"{ends[0]:.3f} to {ends[1]:.3f}"


def p_value(p: float, name: str = "") -> str:
    """Return a p-value as text; after its name, if it has one.

    Example:
        >>> p_value(0.0213), p_value(2.4e-8), p_value(2.4e-8, "p"), p_value(1e-20, "p")
        ('0.021', '2e-08', 'p = 2e-08', 'p < 1e-15')
    """
    if p < _TINY_P:  # so far out the normal approximation says nothing about the data
        return f"{name} < {_TINY_P:g}".lstrip()
    said = f"{p:.0e}" if p < 0.001 else f"{p:.3f}"
    return f"{name} = {said}" if name else said
