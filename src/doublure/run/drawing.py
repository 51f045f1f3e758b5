"""Records of one kind from a generator: asked for directly where it can be, drawn by rejection where it cannot."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.records import taken
from doublure.errors import SettingError, printable
from doublure.networks.array_generator import AnyGenerator, Array
from doublure.networks.sampling import rows_of
from doublure.networks.steering import KnowsConditions
from doublure.networks.tree import TreeGenerator

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.run.conditions import Given
    from doublure.schema.allowed import Allowed

_CANDIDATES = 50_000
_PILOT, _SEEN, _LEFT_OUT = 10_000, 100, 0.01
"""Rows that show how often rules change a column that is asked for; how many must fit; which share may be changed."""
DECIDED_AFTER = 1_000_000
MOST_DRAWN = 100_000_000


class Drawing:
    """What one group of records is drawn by.

    Args:
        generator: The weights.
        encoder: Its records.
        width: How many standard normal numbers a record takes.
        given: What every record must have.

    Attributes:
        given: What every record must have.
        narrow: Whether the generator is asked for what fits.
    """

    def __init__(self, generator: AnyGenerator, encoder: Encoder, width: int, given: Given) -> None:
        self._encoder, self._width, self.given = encoder, width, given
        self._whole: AnyGenerator = generator.eval()
        self._generator = self._whole
        shared = {name for name in encoder.condition_sizes if encoder.schema.columns[name].fact("shares") is not None}
        several = {name for name in encoder.condition_sizes if len(given.fixed.get(name, ())) != 1}
        self._open = several - shared if isinstance(generator, KnowsConditions) else set()
        self._uneven = bool(several & shared)
        self.narrow = False
        if isinstance(generator, TreeGenerator):
            spans = encoder.spans(self._told_by_rows())
            self.narrow = bool(spans)
            self._generator = generator.narrowed(spans) if spans else generator

    def records(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` records; where nothing could be asked for directly, they need not fit."""
        drawn = max(size, self._encoder.fewest_rows) if size else 0
        return taken(self._records(drawn, rng), slice(size)) if drawn > size else self._records(size, rng)

    def _records(self, size: int, rng: np.random.Generator) -> Any:
        return self._encoder.decode(self._rows(size, rng), rng)

    def _rows(self, size: int, rng: np.random.Generator) -> Array:
        seed = int(rng.integers(2**62))
        known = self._conditions(size, rng)
        return rows_of(self._generator, known, size, self._width, seed=seed, complete=bool(self._open))

    def _told_by_rows(self) -> dict[str, Allowed]:
        """Return what is asked for of columns that rules leave as rows say, but for one in a hundred that fit."""
        asked = self.given.by_rejection
        told = {name: cells for name, cells in asked.items() if not self._encoder.may_change(name)}
        unsure = [name for name in asked if name not in told and self._encoder.spans({name: asked[name]})]
        if not unsure:
            return told
        rng = np.random.default_rng(0)
        rows = self._rows(_PILOT, rng)
        frame = self._encoder.decode(rows, rng)
        for name in unsure:
            fits = asked[name].has(self.given.schema.columns[name].snapped_numbers_of(frame[name]))
            said = np.ones(len(fits), dtype=np.bool_)
            for part, spans in self._encoder.spans({name: asked[name]}).items():
                own = rows[:, part]
                said &= np.logical_or.reduce([(low <= own) & (own <= high) for low, high in spans])
            if fits.sum() >= _SEEN and (fits & ~said).sum() <= _LEFT_OUT * fits.sum():
                told[name] = asked[name]
        return told

    def refuse_too_rare(self, n: int) -> None:
        """Refuse what the generator says is too rare for ``n`` records of it among a hundred million.

        Raises:
            SettingError: Naming how rare it is.
        """
        if self.narrow and n > self._chance * MOST_DRAWN:
            raise too_rare(self.given, 1 / max(self._chance, 1e-300), int(self._chance * MOST_DRAWN), n)

    @cached_property
    def _chance(self) -> float:
        """How likely a record fits, beside conditions that are asked for."""
        known = self._known(_CANDIDATES if self._uneven else 1, np.random.default_rng(0))
        return float(self._fit(known).mean())

    # -- conditions --------------------------------------------------------------------------------------------------

    def _conditions(self, size: int, rng: np.random.Generator) -> Array | None:
        if not self._encoder.condition_width:
            return None
        known = self._known(size, rng)
        if self.narrow and self._uneven and size:
            known = self._reweighted(size, rng)
        return known

    def _known(self, size: int, rng: np.random.Generator) -> Array:
        """Return conditions that are asked for or have shares; of the others that the generator knows what will do."""
        drawn, start = self._encoder.draw_conditions(size, rng, self.given.fixed), 0
        for name, length in self._encoder.condition_sizes.items():
            if name in self._open:
                drawn[:, start : start + length] = 0.0
                drawn[:, [start + code for code in self.given.fixed.get(name, ())]] = 1.0
            start += length
        return drawn

    def _reweighted(self, size: int, rng: np.random.Generator) -> Array:
        """Return conditions as frequent as they are among records that fit, not as among all."""
        candidates = self._known(max(size, _CANDIDATES), rng)
        weights = np.cumsum(self._fit(candidates))
        thresholds = (np.arange(size) + rng.random()) / size * weights[-1]
        chosen = rng.permutation(np.minimum(np.searchsorted(weights, thresholds), len(candidates) - 1))
        return candidates[chosen]

    def _fit(self, known: Array) -> Array:
        """Return ``(n,)`` the chance that a record with these conditions fits."""
        if not (isinstance(self._whole, TreeGenerator) and isinstance(self._generator, TreeGenerator)):
            raise TypeError("the generator cannot be narrowed")
        found: Array = np.exp(self._generator.evidence(known) - self._whole.evidence(known))
        return found


def too_rare(given: Given, one_in: float, found: int, n: int) -> SettingError:
    """Return the refusal to draw by rejection what about one record in so many has.

    Args:
        given: What is asked for.
        one_in: How many records there are for one that fits.
        found: How many could be found.
        n: How many are asked for.
    """
    message = f"about one synthetic row in {one_in:,.0f} has this combination, too few to find {n:,}"
    remedy = f"ask for fewer rows ({max(1, found):,} can be found) or conditions"
    if one_in > MOST_DRAWN:
        message = f"not one synthetic row in {MOST_DRAWN:,} has this combination"
        remedy = "ask for fewer conditions"
    return SettingError(message, field=_field(given), remedy=remedy)


def refuse_endless(given: Given, drawn: int, found: int, n: int) -> None:
    """Refuse to draw by rejection what is so rare that ``n`` rows of it would take for ever.

    Whoever goes on has found more than n in a hundred million, so that no more than those are ever drawn.

    Raises:
        SettingError: Naming how rare it is.
    """
    if drawn < DECIDED_AFTER or n * drawn <= MOST_DRAWN * found:
        return
    if found:
        raise too_rare(given, drawn / found, MOST_DRAWN * found // drawn, n)
    message = f"no synthetic row in {drawn:,} has this combination"
    raise SettingError(message, field=_field(given), remedy="ask for fewer conditions")


def _field(given: Given) -> str:
    return "given " + ", ".join(map(printable, [*given.by_rejection, *given.checked]))
