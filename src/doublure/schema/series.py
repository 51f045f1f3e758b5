"""The public facts of a set of time series: start and end, channels and attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr, model_validator
from typing_extensions import override

from doublure.errors import SchemaError, printable
from doublure.schema.columns import (
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    RealColumn,
    type_named,
)
from doublure.schema.fact_states import UNDECLARED, Frozen, Learn, Undeclared, blank_is_undeclared
from doublure.schema.resolving import agree
from doublure.schema.rules.registry import AnyRule
from doublure.schema.rules.rule_set import check_rules
from doublure.schema.scalars import Day, Misfit, Value, Zone, check_name, whole
from doublure.schema.schema import ResolvedSchema, Schema, Unit
from doublure.schema.series_attributes import ATTRIBUTE_TYPES as ATTRIBUTE_TYPES
from doublure.schema.series_attributes import Attribute, described, refuse_lengths
from doublure.schema.series_attributes import FromTime as FromTime
from doublure.schema.series_exogenous import ExogenousReadings, check_exogenous
from doublure.schema.written import TextForm, Written
from doublure.support import yaml12 as yaml_text

if TYPE_CHECKING:
    import pandas as pd

SERIES, STEP, CLOCK = "series", "step", "clock"
"""The columns that tell synthetic series, and the steps of each, apart; and the time of day, where that is one."""

VALUES, CHANNELS = "values", "channels"
"""The arrays that hold synthetic series, and the names of their channels."""

STATES = "states_"
"""Prefix of the array that lists a channel's states, beside an array of their places."""

ABOUT = ("doublure", "watermark", "guarantee")
"""The texts that stand beside them."""

JOINED = (
    "neither it nor unit.id is named, so that all readings of a moment count as one series, wherever they come from; "
    "name either if they come from several places"
)
"""The notice about readings that nothing tells apart."""

STEP_RULES = ("sum", "product", "formula", "at_most", "equal")
"""The rules that channels can keep, at each step by itself."""

LONGEST = 10_000
MOST_CHANNELS, MOST_STATES = 100, 256

_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
MONDAY = 4 * 86_400
"""1970-01-05, 00:00, from which windows are counted."""
_DURATION = re.compile(r"([1-9][0-9]{0,6})\s*(s|min|h|d|w)", re.ASCII)


def _duration(text: str) -> str:
    if _DURATION.fullmatch(text) is None:
        raise ValueError("is no duration; write a whole number and s, min, h, d or w, such as 15min")
    return text


def _seconds(duration: str) -> int | None:
    """Return a duration in seconds; None where it is not declared."""
    found = _DURATION.fullmatch(duration)
    return None if found is None else int(found.group(1)) * _SECONDS[found.group(2)]


_Length: TypeAlias = Annotated[StrictInt, Field(ge=2, le=LONGEST), BeforeValidator(whole)]
_Step: TypeAlias = Undeclared | Annotated[StrictStr, AfterValidator(_duration)]


class Windows(Frozen):
    """Where series begin and end, and what becomes of steps without a reading: public rules, the same for every series.

    A series is a window of ``length`` steps. Windows are cut on the wall clock of ``timezone``, at multiples of their
    duration counted from ``begins`` after Monday, 1970-01-05, 00:00: days begin at midnight, weeks on Mondays, if it is
    left out. Without a ``time`` the data has the series cut already. No rule looks at more than one series.

    Attributes:
        time: The column of moments; for arrays, of each series' beginning.
        time_of_day: The column of the clock, where ``time`` holds days alone: ``18:00``, ``18.00.00``, or the hour.
        source: The column that says where a reading comes from, if that is not the unit's: windows of two sources
            never meet.
        length: Steps in a series.
        step: The time from one step to the next.
        begins: How long after Monday's midnight the grid of windows begins; None: there. Of days ``6h``: at six.
        timezone: Whose midnight; None reads moments as they stand.
        gaps: Steps without a reading are missing, or the data is refused, or the series is left out.
        irregular: Readings off the grid of steps, or several in one step, are refused, or a step is the mean, the
            sum or the last of its readings.
        clock_changes: Where clocks go forward, the steps that do not exist repeat the one before them, and where they
            go back, an hour's two readings are averaged; or series in which clocks change are left out.
        stamp: Whether a reading's moment is where its step begins, or where it ends: what meters call hour-ending.
        stamped_from: The day from which synthetic series are stamped, so that rows have their moments; None: rows have
            the number of their step.
        exogenous: Public readings beside the series, which attributes may follow.
    """

    time: StrictStr | None = None
    time_of_day: StrictStr | None = None
    source: StrictStr | None = None
    length: Annotated[_Length | Undeclared, BeforeValidator(blank_is_undeclared)] = UNDECLARED
    step: Annotated[_Step, BeforeValidator(blank_is_undeclared)] = UNDECLARED
    begins: Annotated[StrictStr, AfterValidator(_duration)] | None = None
    timezone: Zone | None = None
    gaps: Literal["missing", "refuse", "drop"] = "refuse"
    irregular: Literal["refuse", "mean", "sum", "last"] = "refuse"
    clock_changes: Literal["fill", "drop"] = "fill"
    stamp: Literal["start", "end"] = "start"
    stamped_from: Day | None = None
    exogenous: ExogenousReadings | None = None

    @property
    def seconds(self) -> int | None:
        """The step in seconds; None where it is not declared."""
        return _seconds(self.step)

    @property
    def duration(self) -> int | None:
        """A window in seconds; None where that is not declared."""
        return None if self.seconds is None or isinstance(self.length, str) else self.length * self.seconds

    @property
    def origin(self) -> int:
        """The beginning of a window, in seconds since 1970 on the wall clock, from which all others are counted."""
        return MONDAY + (0 if self.begins is None else _seconds(self.begins) or 0)

    @model_validator(mode="after")
    def _zone_needs_time(self) -> Windows:
        if self.time is None and self.timezone is not None:
            raise ValueError("timezone needs a time; name the column of moments, or leave timezone out")
        if self.time is None and self.begins is not None:
            raise ValueError("begins needs a time; name the column of moments, or leave begins out")
        if self.time is None and self.time_of_day is not None:
            raise ValueError("time_of_day needs a time; name the column of days, or leave time_of_day out")
        if self.time is None and self.stamp == "end":
            raise ValueError("stamp needs a time; name the column of moments, or leave stamp out")
        if self.time is None and self.stamped_from is not None:
            raise ValueError("stamped_from needs a time; name the column of moments, or leave stamped_from out")
        return self


class MomentsColumn(DatetimeColumn):
    """When readings were taken; one without is left out, or refused."""

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.calendar_cells import moments

        return pd.Series(moments(raw, self, misfit, warned_of=name))


class StateChannel(IntegerColumn):
    """Values that are no numbers, such as on and off: each stands for its place in the list, from 0."""

    facts: ClassVar[tuple[str, ...]] = ("values", "missing")

    type: Literal["category", "ordinal"]  # type: ignore[assignment]  # reckoned with as the integer that it is
    values: Annotated[tuple[Value, ...], Field(min_length=2, max_length=MOST_STATES)]

    @model_validator(mode="before")
    @classmethod
    def _places(cls, data: Any) -> Any:
        values = data.get("values") if isinstance(data, Mapping) else None
        if not isinstance(values, (list, tuple)):
            return data
        bounds = (0, len(values) - 1)
        if tuple(data.get("bounds") or bounds) != bounds:
            raise ValueError("is a channel of states, which have no bounds; remove them")
        return {**data, "bounds": bounds}

    @model_validator(mode="after")
    def _states_fit(self) -> Self:
        CategoryColumn(values=self.values, missing=self.missing)  # no value twice, none that means missing
        if self.zero_inflated or self.unit != 1:
            raise ValueError("is a channel of states; give it type, values and missing alone")
        return self


Channel = Annotated[IntegerColumn | RealColumn | StateChannel, Field(discriminator="type")]


class SeriesSchema(TextForm, Schema):
    """The public facts of a set of time series."""

    record: ClassVar[str] = "series"

    kind: Literal["series"]
    unit: Unit = Unit(name="series")
    series: Windows = Windows()
    channels: Mapping[str, Channel]
    attributes: Mapping[str, Attribute] = Field(default_factory=dict)
    constraints: tuple[AnyRule, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.channels:
            raise ValueError("channels is empty; describe at least one")
        if len(self.channels) > MOST_CHANNELS:
            raise ValueError(f"channels has more than {MOST_CHANNELS} entries; split the set")
        self._check_names_apart()
        self.check_dates({} if self.series.seconds is None else self.stamps)
        if self.header is False:
            raise ValueError("header: false is for tables; give files of series a line of names")
        if typed := [name for name, each in {**self.channels, **self.attributes}.items() if each.dtype is not None]:
            raise ValueError(f"{printable(typed[0])}: dtype is for columns of tables; remove it")
        for name, channel in self.channels.items():
            if channel.scale is not None or channel.edges or set(channel.spikes) - {0.0}:
                raise ValueError(f"{printable(name)}: scale, edges and spikes are for columns of tables; remove them")
            if channel.roles:
                raise ValueError(f"{printable(name)} is a channel, and channels have no roles; remove them")
            if isinstance(channel.missing, Learn) and self.series.gaps != "missing":
                raise ValueError(
                    f"no step is missing after gaps: {self.series.gaps}; declare missing, or gaps: missing"
                )
        for name, attribute in self.attributes.items():
            if attribute.from_moments and self.series.time is None:
                raise ValueError(f"{printable(name)} follows from the time; name series.time")
        if len(self.with_role("target")) > 1:
            raise ValueError("two attributes have the role target; keep one")
        refuse_lengths(self.attributes, None if isinstance(self.series.length, str) else self.series.length)
        check_exogenous(
            self.series.exogenous,
            self.attributes,
            origin=self.series.origin,
            duration=self.series.duration,
            step=self.series.seconds,
        )
        self._check_rules()
        return self

    def _check_rules(self) -> None:
        """Refuse rules that no step can keep, and those about anything but numbers of one step."""
        for rule in self.constraints:
            if rule.word not in STEP_RULES or not set(rule.names) <= set(self.channels) - set(self.states):
                words = f"{', '.join(STEP_RULES[:-1])} or {STEP_RULES[-1]}"
                raise ValueError(f"constraints of series hold at each step; write {words} of numeric channels")
        check_rules(self.constraints, self.columns)

    def _check_names_apart(self) -> None:
        moments = (self.series.time, self.series.time_of_day)
        named = (self.unit.id, self.series.source, *moments)
        keys = [name for name in named if name is not None]
        for name in self.columns:
            check_name(name)
        places = [
            *zip(("unit.id", "series.source", "series.time", "series.time_of_day"), named, strict=True),
            *((self.path_of(name).partition(".")[0], name) for name in self.columns),
        ]
        both = [name for name in self.channels if name in self.attributes]
        both += [name for name in keys if name in self.columns or (name in moments and keys.count(name) > 1)]
        if both:
            first, second, *_ = [place for place, name in places if name == both[0]] + ["attributes"]
            remedy = "copy the column in the data under a second name, and give each its own"
            raise ValueError(f"{printable(both[0])} is named for two things, {first} and {second}; {remedy}")
        taken = {SERIES, STEP, CLOCK} & {*self.columns, *moments}
        if taken:
            raise ValueError(f"{min(map(str, taken))} is a name that synthetic series use; rename the column")
        taken = {VALUES, CHANNELS, *ABOUT} & set(self.attributes)
        if taken:
            raise ValueError(f"{min(taken)} is a name that synthetic series use; rename the attribute")

    # -- columns -------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> Mapping[str, Column]:
        """The channels, then the attributes; a channel of states is its list here, and the places in it there."""
        lists = {
            name: type_named(self.channels[name].type).model_validate(
                {key: self.channels[name].fact(key) for key in ("values", "missing", "description")}
            )
            for name in self.states
        }
        return {**self.channels, **lists, **self.attributes}

    @property
    def moments(self) -> Mapping[str, MomentsColumn]:
        """The column of moments, if there is one: read on the wall clock of the time zone."""
        column = MomentsColumn(timezone=self.series.timezone)
        return {} if self.series.time is None else {self.series.time: column}

    @property
    @override
    def written(self) -> Written | None:
        return self.written_as({**self.channels, **self.attributes, **self.moments}, numbered=True)

    @property
    @override
    def cell_form(self) -> Written:
        form = super().cell_form
        return replace(form, columns={**form.columns, **self.columns, **self.stamps})

    @property
    def stamps(self) -> Mapping[str, Column]:
        """The column of moments as synthetic rows have it: no seconds where steps are of whole minutes."""
        windows = self.series
        if windows.time is None or windows.stamped_from is None:
            return {}
        if windows.time_of_day is not None:
            return {windows.time: DateColumn()}
        return {windows.time: DatetimeColumn(step=windows.seconds or 1)}

    @property
    def names_of_series(self) -> tuple[str, ...]:
        """The columns that tell stamped series apart in the data, and do so in synthetic rows."""
        named = (self.unit.id, self.series.source) if self.stamps else ()
        return tuple(dict.fromkeys(name for name in named if name not in (None, SERIES, STEP, CLOCK)))

    @property
    def source(self) -> str | None:
        """The column that says where a reading comes from; the unit's own if none is named."""
        return self.series.source or self.unit.id

    @property
    @override
    def open_ids(self) -> tuple[str, ...]:
        unit, source = self.unit, self.series.source
        return () if source is None or unit.id is not None or unit.each_record else (source,)

    @property
    @override
    def cautions(self) -> tuple[tuple[str, str], ...]:
        refused = self.series.irregular == self.misfit == "refuse"
        if self.series.time is None or self.source is not None or refused:
            return ()
        return (("series.source", JOINED),)

    @property
    def states(self) -> dict[str, tuple[Value, ...]]:
        """The values of channels that are no numbers, by whose places in the list they are reckoned with."""
        return {name: found for name, each in self.channels.items() if (found := each.fact("values"))}

    @property
    def length(self) -> int:
        """Steps in a series."""
        if isinstance(self.series.length, str):
            raise SchemaError("is not known yet", field="series.length", remedy="declare how many steps a series has")
        return self.series.length

    @property
    def ends_at(self) -> str | None:
        """The attribute that says how many steps a series has; None where all have :attr:`length`."""
        return next((name for name, each in self.attributes.items() if each.from_length), None)

    @property
    @override
    def unit_in_words(self) -> str:
        spaced = "" if self.series.time is None else f" of {self.series.step}"
        return f"{self.unit.name} (one series of {self.series.length} steps{spaced})"

    @property
    @override
    def limits(self) -> tuple[str, ...]:
        numbers = len(self.channels) - len(self.states)
        order = ("An order between channels is kept only where constraints declare it.",) if numbers > 1 else ()
        if not self.stamps:
            return (*super().limits, *order)
        moment = "ends" if self.series.stamp == "end" else "begins"
        return (
            *super().limits,
            *order,
            f"Dates are made up, from {self.series.stamped_from} on. A row is stamped when its step {moment}.",
        )

    @property
    @override
    def undeclared(self) -> tuple[str, ...]:
        return (*super().undeclared, *self._open_windows())

    def _open_windows(self) -> Iterator[str]:
        if self.series.length == UNDECLARED:
            yield "series.length"
        if self.series.time is not None and self.series.step == UNDECLARED:
            yield "series.step"

    def may_be_missing(self, channel: str) -> bool:
        """Whether a step of a channel may be missing once gaps are dealt with."""
        return self.series.gaps == "missing" and self.channels[channel].may_be_missing

    def may_have_gaps(self, channel: str) -> bool:
        """Whether a step of a channel may be missing, or may turn out to be once that is bought."""
        return self.series.gaps == "missing" and self.channels[channel].missing is not False

    @override
    def cells_of(self, column: str | None, fact: str) -> int:
        return 2 if column in self.channels and fact == "bounds" else 1

    # -- in the file ---------------------------------------------------------------------------------------------

    @override
    def path_of(self, name: str) -> str:
        return f"{'channels' if name in self.channels else 'attributes'}.{name}"

    @override
    def _place(self, data: dict[str, Any], column: str) -> dict[str, Any]:
        place: dict[str, Any] = data["channels" if column in self.channels else "attributes"][column]
        return place

    @override
    def to_plain(self) -> dict[str, Any]:
        data = super().to_plain()
        always = {"length": self.series.length, "gaps": self.series.gaps}
        written = self.series.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        data["series"] = {key: (always | written)[key] for key in Windows.model_fields if key in always | written}
        for name, column in {**self.channels, **self.attributes}.items():
            found = described(column)
            if name in self.states:
                found.pop("bounds", None)
            self._place(data, name).clear()
            self._place(data, name).update(found)
        if not self.attributes:
            data.pop("attributes", None)
        if not self.constraints:
            data.pop("constraints", None)
        return data

    @override
    def to_yaml(self) -> str:
        text = ""
        for key, value in self.to_plain().items():
            if key in ("channels", "attributes"):
                lines = (f"  {yaml_text.inline(name)}: {yaml_text.inline(column)}\n" for name, column in value.items())
                text += f"{key}:\n" + "".join(lines)
            elif key == "constraints":
                text += yaml_text.dump({key: value})
            else:
                text += f"{key}: {yaml_text.inline(value)}\n"
        return text

    @override
    def _fixed(self, learned: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answers, made to agree with the declared facts.

        A series that a noisy answer says has no missing step where the gaps are kept stays as it is: the encoder reads
        such a step as the lower bound, as a table's.
        """
        return agree(self.columns, self.constraints, learned, self.path_of)


class ResolvedSeriesSchema(SeriesSchema, ResolvedSchema):
    """The facts of a set of time series, all of them known."""
