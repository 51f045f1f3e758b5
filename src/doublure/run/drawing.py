"""Draw records under conditions: directly where the generator can, by rejection where it cannot."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.records import taken
from doublure.errors import SettingError, printable
from doublure.networks.array_generator import AnyGenerator, Array
from doublure.networks.sampling import rows_of
from doublure.networks.steering import ConditionPrior
from doublure.networks.tree import TreeGenerator

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.run.conditions import Conditions
    from doublure.schema.allowed import Allowed

_CANDIDATES = 50_000
_PILOT, _SEEN, _LEFT_OUT = 10_000, 100, 0.01
"""Pilot rows that show how often rules change a column; how many must fit; the share that may be changed."""
DECIDED_AFTER = 1_000_000
MOST_DRAWN = 100_000_000


class ConditionalSampler:
    """Draws one group of records.

    Args:
        generator: The generator.
        encoder: The encoder of its records.
        width: Standard normal numbers per record.
        given: Conditions that every record must meet.

    Attributes:
        given: Conditions that every record must meet.
        narrow: Whether the generator itself is restricted to them.
    """

    def __init__(self, generator: AnyGenerator, encoder: Encoder, width: int, given: Conditions) -> None:
        self._encoder, self._width, self.given = encoder, width, given
        self._whole: AnyGenerator = generator.eval()
        self._generator = self._whole
        shared = {name for name in encoder.condition_sizes if encoder.schema.columns[name].fact("shares") is not None}
        several = {name for name in encoder.condition_sizes if len(given.fixed.get(name, ())) != 1}
        self._open = several - shared if isinstance(generator, ConditionPrior) else set()
        self._uneven = bool(several & shared)
        self.narrow = False
        if isinstance(generator, TreeGenerator):
            spans = encoder.spans(self._told_by_rows())
            self.narrow = bool(spans)
            self._generator = generator.narrowed(spans) if spans else generator

    def records(self, size: int, rng: np.random.Generator) -> Any:
        """Return ``size`` records, which need not meet conditions that the generator cannot take."""
        drawn = max(size, self._encoder.fewest_rows) if size else 0
        return taken(self._records(drawn, rng), slice(size)) if drawn > size else self._records(size, rng)

    def _records(self, size: int, rng: np.random.Generator) -> Any:
        return self._encoder.decode(self._rows(size, rng), rng)

    def _rows(self, size: int, rng: np.random.Generator) -> Array:
        seed = int(rng.integers(2**62))
        known = self._conditions(size, rng)
        return rows_of(self._generator, known, size, self._width, seed=seed, complete=bool(self._open))

    def _told_by_rows(self) -> dict[str, Allowed]:
        """Return the conditions that rows decide: of columns that rules leave unchanged in 99 of 100 fitting rows."""
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
        """Refuse conditions that, by the generator, fewer than ``n`` of a hundred million records meet.

        Raises:
            SettingError: Naming the rarity.
        """
        if self.narrow and n > self._chance * MOST_DRAWN:
            raise rarity_refusal(self.given, 1 / max(self._chance, 1e-300), int(self._chance * MOST_DRAWN), n)

    @cached_property
    def _chance(self) -> float:
        """Probability that a record fits, given the fixed conditions."""
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
        """Return fixed conditions and those with shares, and the accepted codes of those the generator chooses."""
        drawn, start = self._encoder.draw_conditions(size, rng, self.given.fixed), 0
        for name, length in self._encoder.condition_sizes.items():
            if name in self._open:
                drawn[:, start : start + length] = 0.0
                drawn[:, [start + code for code in self.given.fixed.get(name, ())]] = 1.0
            start += length
        return drawn

    def _reweighted(self, size: int, rng: np.random.Generator) -> Array:
        """Return conditions with their frequencies among fitting records, not among all."""
        candidates = self._known(max(size, _CANDIDATES), rng)
        weights = np.cumsum(self._fit(candidates))
        thresholds = (np.arange(size) + rng.random()) / size * weights[-1]
        chosen = rng.permutation(np.minimum(np.searchsorted(weights, thresholds), len(candidates) - 1))
        return candidates[chosen]

    def _fit(self, known: Array) -> Array:
        """Return ``(n,)`` probabilities that a record with these conditions fits."""
        if not (isinstance(self._whole, TreeGenerator) and isinstance(self._generator, TreeGenerator)):
            raise TypeError("the generator cannot be narrowed")
        found: Array = np.exp(self._generator.evidence(known) - self._whole.evidence(known))
        return found


def rarity_refusal(given: Conditions, one_in: float, found: int, n: int) -> SettingError:
    """Return the refusal to draw a rare combination by rejection.

    Args:
        given: The conditions.
        one_in: Records per fitting record.
        found: Records that could be found.
        n: Records that are asked for.
    """
    message = f"about one synthetic row in {one_in:,.0f} has this combination, too few to find {n:,}"
    remedy = f"ask for fewer rows ({max(1, found):,} can be found) or conditions"
    if one_in > MOST_DRAWN:
        message = f"not one synthetic row in {MOST_DRAWN:,} has this combination"
        remedy = "ask for fewer conditions"
    return SettingError(message, field=_field(given), remedy=remedy)


def refuse_endless(given: Conditions, drawn: int, found: int, n: int) -> None:
    """Refuse to draw ``n`` rows of a combination by rejection if it is too rare.

    Drawing goes on only while the found share suffices, so that at most a hundred million rows are drawn.

    Raises:
        SettingError: Naming the rarity.
    """
    if drawn < DECIDED_AFTER or n * drawn <= MOST_DRAWN * found:
        return
    if found:
        raise rarity_refusal(given, drawn / found, MOST_DRAWN * found // drawn, n)
    message = f"no synthetic row in {drawn:,} has this combination"
    raise SettingError(message, field=_field(given), remedy="ask for fewer conditions")


def refuse_without_rows(units: int, rows: int) -> None:
    """Refuse to go on where a million units have had no row.

    Raises:
        SettingError: So many had none.
    """
    if units > DECIDED_AFTER and not rows:
        message = f"cannot be drawn: not one of {units:,} synthetic units has a row"
        raise SettingError(message, field="n", remedy="fit with more epsilon, or by another method")


def _field(given: Conditions) -> str:
    return "given " + ", ".join(map(printable, [*given.by_rejection, *given.checked]))
