"""A fitted synthesizer: sampling from it is post-processing and costs nothing."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

import numpy as np
import pandas as pd

from doublure.data.records import count_rows, filling, handed_out, joined, taken, with_made
from doublure.errors import RunFolderError, SettingError
from doublure.guarantee import Guarantee
from doublure.methods import registry as methods
from doublure.methods.method import Estimation, unshared_conditions
from doublure.networks.array_generator import ArrayGenerator
from doublure.planning import Plan
from doublure.run import conditions as asking
from doublure.run import display
from doublure.run.drawing import DECIDED_AFTER, ConditionalSampler, refuse_endless, refuse_without_rows
from doublure.schema import ResolvedSchema
from doublure.schema.kinds import KINDS
from doublure.support import seeding

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator
    from doublure.training.noisy_tables import NoisyTable


_FIRST_LOOK = 5_000
"""First records of drawing by rejection, which show how many fit."""
_UNITS_DRAWN = 10_000
"""Units whose mean number of rows counts for all: of k rows at most, its standard error is k/200 at most."""


class Estimate(Protocol):
    """An estimate of the expected privacy loss."""

    @property
    def pairs(self) -> int:
        """Number of real records that it was made from."""

    @property
    def features(self) -> str:
        """The features in which distances were measured."""

    @property
    def artificial(self) -> int:
        """Number of synthetic records."""

    @property
    def seed(self) -> int:
        """The seed of all draws."""

    @property
    def mu(self) -> float:
        """μ, at least 0."""

    @property
    def gamma(self) -> float:
        """The chance that one more pair's loss passes μ."""

    @property
    def basis(self) -> str:
        """Its basis, in words; no figure of the data."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Synthesizer:
    """A fitted generator with its schema, plan and guarantee.

    Attributes:
        schema: The resolved schema, with the bought facts.
        plan: The plan that it was fitted by.
        guarantee: The claim.
        generator: The weights.
        run: Public facts of the run: time, ledger entry, seed.
        executed: The events that ran beside those priced, by access; None for a run of an earlier version, and for a
            published generator, whose card has the comparison.
        read_tables: Returns the noisy tables that were bought.
        published: Whether it was read from a published generator and not from a run.

    Example:
        >>> syn
        Synthesizer(method='statistics', 3 columns, guarantee='(ε=1, δ=1e-05)-differentially private ...')
        >>> syn.guarantee == plan.guarantee
        True
    """

    schema: ResolvedSchema
    plan: Plan
    guarantee: Guarantee
    generator: AnyGenerator = field(repr=False)
    run: dict[str, Any] = field(default_factory=dict, repr=False)
    executed: list[dict[str, Any]] | None = field(default=None, repr=False)
    read_tables: Callable[[], tuple[NoisyTable, ...]] = field(default=tuple, repr=False)
    published: bool = False

    def __repr__(self) -> str:
        """Return one line; schema, plan and weights would fill pages."""
        made = self.schema.summary if self.schema.only_columns else self.schema.kind
        return f"Synthesizer(method={self.plan.method!r}, {made}, guarantee={self.guarantee.sentence!r})"

    def _repr_html_(self) -> str:
        return display.html(self.schema, self.plan, self.guarantee, self.run, self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the sampling for users of the records, a line each."""
        method = methods.method(self.plan.method)
        limits = method.limits(self.schema, self.plan.settings)
        hidden = method.noise_limits(self.schema, self.plan.settings, self.plan.touches, self.read_tables)
        fitted = method.fitted_limits(self.schema, self.plan.settings, self.generator)
        said = (*unshared_conditions(method, self.schema), *limits, *hidden, *fitted, *self.schema.origins)
        return said if self.schema.row_note is None else (*said, self.schema.row_note)

    @property
    def default_n(self) -> int:
        """Default number of records: the schema's units, declared or bought; of visits, the rows of so many units.

        Example:
            >>> syn.default_n == len(syn.sample()) == 400
            True
        """
        return self._default_n

    @cached_property
    def _default_n(self) -> int:
        units = self.schema.public_units
        if self._encoder.most_rows == 1:
            return units
        drawn = min(units, _UNITS_DRAWN)
        everything = asking.read({}, self.schema, self._encoder).groups[0][0]
        records = self._drawing(everything).records(drawn, np.random.default_rng(0))
        return max(1, round(units * count_rows(records) / drawn))

    @property
    def bought(self) -> tuple[str, ...]:
        """The facts that the fit learned, a line each; they are in the schema."""
        return display.bought(self.plan.schema, self.schema)

    def sample(
        self,
        n: SupportsIndex | None = None,
        given: Mapping[str, object] | None = None,
        seed: SupportsIndex | None = None,
        syntheses: int | None = None,
        steps: int | None = None,
        exogenous: pd.DataFrame | None = None,
    ) -> Any:
        """Return exactly ``n`` synthetic records, or several such tables.

        Args:
            n: Number of records, at least 0; left out, :attr:`default_n`.
            given: Conditions by column that every record must meet: a value, a range ``(30, 40)``, a list of values,
                None for missing, or a distribution ``{"f": 0.5, "m": 0.5}``; for images ``{"label": value}``, for
                series attributes.
            seed: Makes the records repeatable; without one they are new each time.
            syntheses: Number of tables, each from another draw of what noise and sampling leave open
                (:mod:`doublure.run.syntheses`); None: the records of the fit itself.
            steps: Steps of each time series, in windows that follow one another; ``n`` is then 1 if left out. None: a
                series is one window.
            exogenous: Public readings for series that go on, such as a forecast of temperatures: the moments in the
                first column; None: the schema's.

        Returns:
            A ``pandas.DataFrame`` in the form that the schema declares; for images
            :class:`doublure.data.images.Images`, which has ``images`` ``(n, H, W, C)`` uint8 and ``labels``; for series
            :class:`doublure.data.series.Series`, which has ``values`` ``(n, length, channels)`` and ``attributes``; for
            related tables a mapping of frames, with n rows in the root's. With ``syntheses`` a list of frames.

        Raises:
            SettingError: A column or value is not in the schema, or the combination is too rare to sample; or several
                syntheses are asked for under conditions, or of a fit without noisy tables.

        Example:
            >>> rows = syn.sample(5, given={"sex": "Female", "age": (30, 40)}, seed=7)
            >>> rows["sex"].tolist()
            ['Female', 'Female', 'Female', 'Female', 'Female']
            >>> bool(rows["age"].between(30, 40).all())
            True
        """
        if steps is not None and syntheses is None:
            drawn = self.draw_steps(1 if n is None else n, steps, given=given, seed=seed, exogenous=exogenous)
            return joined(list(drawn))
        if exogenous is not None:
            raise SettingError("are for series that go on", field="exogenous", remedy="say how many steps")
        if steps is not None:
            raise SettingError("have no syntheses", field="steps", remedy="leave one of the two out")
        rows = self.default_n if n is None else n
        if syntheses is None:
            return handed_out(self.draw(rows, given=given, seed=seed), self.schema)
        if given:
            raise SettingError("has no syntheses", field="given", remedy="leave it out, and filter each table")
        return [handed_out(own, self.schema) for own in self.draw_syntheses(rows, syntheses, seed)]

    def draw_syntheses(
        self, n: SupportsIndex, syntheses: int, seed: SupportsIndex | None = None
    ) -> Iterator[pd.DataFrame]:
        """Yield the same tables as :meth:`sample`, one at a time, in the container of :meth:`draw`.

        Raises:
            SettingError: As :meth:`sample`, before the first is asked for.
        """
        from doublure.run.syntheses import draw_syntheses

        return draw_syntheses(self, require_count(n), syntheses, seeding.choose_seed(seed))

    def draw_steps(
        self,
        n: SupportsIndex,
        steps: int,
        given: Mapping[str, object] | None = None,
        seed: SupportsIndex | None = None,
        exogenous: pd.DataFrame | None = None,
    ) -> Iterator[Any]:
        """Return chunks of the same series as :meth:`sample` with ``steps``.

        Raises:
            SettingError: As :meth:`sample`, before the first is asked for; or series do not go on.
        """
        from doublure.run.continuing import LongSeries, read_exogenous

        public = None if exogenous is None else read_exogenous(exogenous)
        going_on = LongSeries(self.schema, self._encoder, self.generator.eval(), steps, given or {}, public)
        return going_on.chunks(require_count(n), seeding.choose_seed(seed))

    def draw(
        self, n: SupportsIndex, given: Mapping[str, object] | None = None, seed: SupportsIndex | None = None
    ) -> Any:
        """Return the same as :meth:`sample` in the container of its kind, as :meth:`sample_chunks` yields it.

        Raises:
            SettingError: As :meth:`sample`.
        """
        parts = list(self.sample_chunks(n, given=given, seed=seed))
        return parts[0] if len(parts) == 1 else joined(parts)

    def sample_chunks(
        self,
        n: SupportsIndex,
        given: Mapping[str, object] | None = None,
        seed: SupportsIndex | None = None,
        chunk_rows: int | None = None,
        first: int = 0,
        told: Callable[[float], None] | None = None,
    ) -> Iterator[Any]:
        """Yield ``n`` records a chunk at a time, at bounded memory; at least one chunk, which may be empty.

        The records depend on ``seed`` and ``chunk_rows`` (50,000 rows of a table, 500 images or 5,000 series, if not
        given). Chunks can be drawn separately: without rejection, those from the ``first`` on are the same as if all
        before them had been drawn.

        Units of related tables can be long, and a chunk of them then takes long: ``told`` receives how many more units
        are drawn, as their rows are.

        Raises:
            SettingError: As :meth:`sample`; all but the rarity is checked before the first chunk is asked for.

        Example:
            >>> [len(chunk) for chunk in syn.sample_chunks(100, seed=7, chunk_rows=40)]
            [40, 40, 20]
        """
        if chunk_rows is None:
            chunk_rows = min(KINDS[self.schema.kind].chunk, self._encoder.most_at_once)
        if chunk_rows < 1:
            raise SettingError("must be at least 1", field="chunk_rows", remedy="leave it out")
        wanted = asking.read(given or {}, self.schema, self._encoder)
        if first and wanted.by_rejection:
            raise SettingError("must be 0 where records are found by rejection", field="first", remedy="leave it out")
        drawn = self if told is None or wanted.by_rejection else self._telling(told)
        return drawn._chunks(require_count(n), wanted, seeding.choose_seed(seed), chunk_rows, first)

    def _telling(self, told: Callable[[float], None]) -> Synthesizer:
        """Return the same, which says how many more records are drawn; of visits, a chunk is some rows and short."""
        if self._encoder.most_rows > 1 or not isinstance(self.generator, ArrayGenerator):
            return self
        return replace(self, generator=self.generator.telling(told))

    def by_rejection(self, given: Mapping[str, object]) -> bool:
        """Whether these conditions need rejection, which draws other records, too.

        Raises:
            SettingError: As :meth:`sample`.
        """
        return asking.read(given, self.schema, self._encoder).by_rejection

    def sampling_with(self, **settings: object) -> Synthesizer:
        """Return the same synthesizer with other settings of sampling, which is free as sampling is.

        Args:
            settings: By name, such as ``sampled_spread`` of ``guided`` on images.

        Raises:
            SettingError: The fit depended on a setting, there is none of that name, or a value is out of range.
        """
        if not settings:
            return self
        plan = replace(self.plan, settings=self.plan.settings.sampling_with(settings))
        generator = methods.method(plan.method).build(self._encoder, plan.settings, seed=0)
        generator.load_state_dict(self.generator.state_dict())
        return replace(self, plan=plan, generator=generator.eval())

    @cached_property
    def tables(self) -> tuple[NoisyTable, ...]:
        """The noisy contingency tables that the fit bought, as released; none for most methods.

        Raises:
            RunFolderError: Their file in the run folder is missing or damaged.
        """
        return self.read_tables()

    def save(self, path: str | Path) -> None:
        """Write a run folder that :func:`doublure.load` reads.

        Raises:
            RunFolderError: It is a published generator, which does not hold its run.

        Example:
            >>> syn.save("run")
            >>> db.load("run").guarantee == syn.guarantee
            True
        """
        from doublure.run.folder import RunFolder

        if self.published:
            remedy = "copy its folder"
            raise RunFolderError("is a published generator, and no run", field="save", remedy=remedy)

        RunFolder.export(
            Path(path),
            plan=self.plan,
            schema=self.schema,
            guarantee=self.guarantee,
            generator=self.generator,
            run=self.run,
            executed=self.executed,
            tables=self.tables,
        )

    def with_estimate(self, estimate: Estimate | None) -> Synthesizer:
        """Return the same synthesizer with an estimate of its expected privacy loss in its guarantee.

        The figure is computed on real data, without noise: stating it releases it.

        Args:
            estimate: From an evaluation under the plan's settings; None where it could not be made.

        Raises:
            SettingError: There is no estimate, it was made otherwise than the plan says, or the guarantee is of another
                kind than ``empirical``.
        """
        self.require_estimate()
        if estimate is None:
            remedy = "see the report for why"
            raise SettingError("there is no estimate to state", field="claim", remedy=remedy)
        planned = methods.method(self.plan.method).estimation(self.plan.settings)
        made = Estimation(
            pairs=estimate.pairs, features=estimate.features, artificial=estimate.artificial, seed=estimate.seed
        )
        if planned is not None and planned != made:
            remedy = (
                f"estimate it from {planned.pairs} pairs in the features {planned.features} on {planned.artificial} "
                f"synthetic records, with seed {planned.seed}"
            )
            raise SettingError("was made otherwise than the plan says", field="estimate", remedy=remedy)
        stated = self.guarantee.estimated(mu=estimate.mu, gamma=estimate.gamma, basis=estimate.basis)
        return replace(self, guarantee=stated)

    def require_estimate(self) -> None:
        """Refuse to state an estimate where the kind of the guarantee has no place for one.

        Raises:
            SettingError: The kind is another than ``empirical``.
        """
        if self.guarantee.kind != "empirical":
            message = f"is for a guarantee of kind empirical, and this one is {self.guarantee.kind}"
            raise SettingError(message, field="claim", remedy="leave it out")

    # -- inside --------------------------------------------------------------------------------------------------

    @cached_property
    def _encoder(self) -> Encoder:
        from doublure.encode.choice import encoder_for

        return encoder_for(self.schema, self.plan.settings.encoding)

    def _chunks(self, n: int, wanted: asking.ConditionGroups, seed: int, chunk_rows: int, first: int) -> Iterator[Any]:
        """Yield the records of one group, or of several groups mixed in every chunk."""
        drawings = [self._drawing(given) for given, _ in wanted.groups]
        if len(drawings) == 1:
            for frame, done in self._of_group(n, drawings[0], (seed,), chunk_rows, first):
                yield with_made(frame, self.schema, done, seed)
            return
        done, number = min(n, first * chunk_rows), first
        while done < n or number == 0:
            size = min(chunk_rows, n - done)
            parts = [
                frame
                for group, count in enumerate(wanted.counts(done, size))
                for frame, _ in self._of_group(count, drawings[group], (seed, number, group), chunk_rows)
            ]
            whole = joined(parts)
            order = np.random.default_rng([seed, number]).permutation(len(whole))
            yield with_made(taken(whole, order), self.schema, done, seed)
            done, number = done + size, number + 1

    def _of_group(
        self, n: int, drawing: ConditionalSampler, entropy: tuple[int, ...], chunk_rows: int, first: int = 0
    ) -> Iterator[tuple[Any, int]]:
        """Yield ``n`` fitting records in chunks, each with the number of records before; at least one chunk."""
        given = drawing.given
        drawing.refuse_too_rare(n)
        done, number, drawn, found = min(n, first * chunk_rows), first, 0, 0
        while done < n or number == 0:
            size = n - done
            if drawn and not given.sure:  # as many as are likely to be needed, by those that fitted so far
                size = math.ceil(1.1 * size * drawn / max(1, found)) + 8
            elif size and not given.sure and not drawing.narrow:
                size = max(_FIRST_LOOK, size)
            size = min(chunk_rows, size)
            frame = given.fitting(self._draw(size, drawing, np.random.default_rng([*entropy, number])))
            drawn, found = drawn + size, found + count_rows(frame)
            frame = filling(frame, min(chunk_rows, n - done))
            if not given.sure and done + count_rows(frame) < n:
                refuse_endless(given, drawn, found, n)
            number += 1
            if len(frame) or n == 0:
                yield frame, done
                done += count_rows(frame)

    def _drawing(self, given: asking.Conditions) -> ConditionalSampler:
        width = methods.method(self.plan.method).sample_noise(self.plan.settings)
        return ConditionalSampler(self.generator, self._encoder, width, given)

    def _draw(self, size: int, drawing: ConditionalSampler, rng: np.random.Generator) -> Any:
        """Return records of ``size`` rows; of units with several rows so many that they have as many or more."""
        most = self._encoder.most_rows
        parts = [drawing.records(math.ceil(size / most), rng)]
        units, rows = len(parts[0]), count_rows(parts[0])
        while rows < size:
            refuse_without_rows(units, rows)
            wanted = math.ceil((size - rows) * units / rows) if rows else units  # none yet: twice as many
            parts.append(drawing.records(min(wanted, DECIDED_AFTER) + most, rng))
            units, rows = units + len(parts[-1]), rows + count_rows(parts[-1])
        return parts[0] if len(parts) == 1 else joined(parts)


def require_count(n: SupportsIndex) -> int:
    """Return the number of records, checked.

    Raises:
        SettingError: It is no whole number of at least 0.
    """
    try:
        number = operator.index(n)
    except TypeError:
        number = -1
    if isinstance(n, bool) or number < 0:
        raise SettingError("must be a whole number of at least 0", field="n", remedy="say how many rows to make")
    return number
