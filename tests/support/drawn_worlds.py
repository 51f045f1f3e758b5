"""Schemas of every kind, drawn by hypothesis, with a few records that fit each of them.

What a plan decides follows from the schema, its public units and ε. So these vary over all that a rule asks for, and
the records are few: a fit of fifty that were declared a million takes the same choices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import doublure as db
from doublure.schema.columns import label

ROWS = 50
EPSILON = st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0, 20.0])
_UNITS = st.sampled_from([50, 400, 3000, 30_000, 1_000_000])
_WORDS = ["no", "a b", "é", "0", "=x", "1e5", "Z" * 40, "-9"]
_LETTERS = "abcdefgh"


@dataclass(frozen=True)
class World:
    """A schema, records that fit it, and what is asked of its plan.

    Attributes:
        facts: The schema, as JSON.
        data: Records, as ``fit`` takes them.
        epsilon: The budget.
        settings: Of the method: how long it may take, and nothing that a rule chooses.
        method: What trains.
    """

    facts: dict[str, Any]
    data: Any = field(repr=False)
    epsilon: float
    settings: dict[str, Any] = field(default_factory=dict)
    method: str = "auto"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show hypothesis what a failure can be repeated with, and no record."""
        printer.text(f"ε = {self.epsilon} {self.method} {json.dumps(self.facts, ensure_ascii=False)}")

    @property
    def schema(self) -> db.Schema:
        """The schema."""
        return db.Schema.parse(json.dumps(self.facts))

    @property
    def delta(self) -> float:
        """A tenth of one over the public units, or a millionth."""
        return min(1e-6, 0.1 / self.schema.public_units)


# -- columns ---------------------------------------------------------------------------------------------------------


@st.composite
def numbers(draw: st.DrawFn, kind: str, *, spread: bool = True) -> dict[str, Any]:
    """Draw the facts of an integer or a real, ``missing`` aside."""
    low = draw(st.sampled_from([0, 1, -5, -1000, 2020]))
    width = draw(st.sampled_from([1, 3, 20, 100, 999, 250_000]))
    facts: dict[str, Any] = {"type": kind, "bounds": [low, low + width]}
    if kind == "real":
        facts |= draw(st.sampled_from([{}, {"precision": 0}, {"precision": 2}, {"step": 0.5}]))
    elif width >= 20:
        facts |= draw(st.sampled_from([{}, {}, {"step": 10}]))
    if not spread:
        return facts
    how = draw(st.sampled_from(["", "", "zero", "spikes", "log", "symlog", "edges"]))
    if how == "zero" and low <= 0 <= low + width:
        facts["zero_inflated"] = True
    elif how == "spikes" and low % 10 == 0:
        facts["spikes"] = [low]
    elif how == "symlog" or (how == "log" and low >= 0):
        facts["scale"] = how
    elif how == "edges" and width >= 20:
        facts["edges"] = [low + width // 4, low + width // 2]
    return facts


@st.composite
def choices(draw: st.DrawFn, *, most: int = 8) -> dict[str, Any]:
    """Draw the facts of a category, an ordinal or a boolean."""
    kind = draw(st.sampled_from(["category", "ordinal", "boolean"]))
    if kind == "boolean":
        return {"type": "boolean"}
    size = draw(st.sampled_from([size for size in (1, 2, 3, 8, 40) if size <= most]))
    values = draw(st.sampled_from([_WORDS, list(_LETTERS), list(range(8))]))[:size]
    values = values if size <= len(values) else [f"v{place}" for place in range(size)]
    return {"type": kind, "values": values} | draw(st.sampled_from([{}, {"other": "Other"}]))


@st.composite
def calendars(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the facts of a date or a moment."""
    if draw(st.booleans()):
        return {
            "type": "date",
            "bounds": draw(st.sampled_from([["2020-01-01", "2020-01-05"], ["1900-01-01", "2024-12-31"]])),
        }
    more = draw(st.sampled_from([{}, {"step": 60}, {"step": 86400}, {"timezone": "Europe/Paris"}]))
    return {"type": "datetime", "bounds": ["2024-01-01", "2024-12-31T23:00:00"]} | more


@st.composite
def columns(draw: st.DrawFn, *, learned: float = 0.0) -> dict[str, Any]:
    """Draw the facts of a table's column.

    Args:
        learned: What a fact may be bought for; 0: none is.
    """
    kind = draw(st.sampled_from(["integer", "real", "choice", "calendar", "choice"]))
    if kind == "choice":
        facts = draw(choices(most=40))
    else:
        facts = draw(calendars()) if kind == "calendar" else draw(numbers(kind))
    missing: list[Any] = [False, False, True, ["?"]]
    if learned:
        missing.append({"learn": learned})
        whole = not {"edges", "spikes", "scale"} & set(facts)
        if "bounds" in facts and whole and draw(st.integers(0, 4)) == 0:
            facts["bounds"] = {"learn": learned}
        if facts["type"] == "category" and draw(st.integers(0, 4)) == 0:
            facts |= {"values": {"learn": learned}, "other": "Other"}
    return facts | {"missing": draw(st.sampled_from(missing))}


def cells(facts: Mapping[str, Any], rows: int, source: np.random.Generator) -> pd.Series:
    """Return cells that fit a column."""
    kind, ends = facts["type"], facts.get("bounds")
    ends = [0, 50] if isinstance(ends, dict) and kind in ("integer", "real") else ends
    if kind == "boolean":
        found = source.random(rows) < 0.3
    elif kind in ("category", "ordinal"):
        listed = facts["values"] if isinstance(facts["values"], list) else list(_LETTERS)
        found = np.array(listed, dtype=object)[source.integers(0, len(listed), rows)]
    elif kind in ("date", "datetime"):
        first, last = (pd.Timestamp(end) for end in (ends if isinstance(ends, list) else ["2024-01-01", "2024-03-01"]))
        step = pd.Timedelta(days=1) if kind == "date" else pd.Timedelta(seconds=facts.get("step", 1))
        found = np.array([first + step * int(n) for n in source.integers(0, (last - first) // step + 1, rows)])
    else:
        step = facts.get("step", 1 if kind == "integer" else 10.0 ** -facts.get("precision", 3))
        low, high = np.ceil(ends[0] / step), np.floor(ends[1] / step)
        found = np.round(source.integers(low, high + 1, rows) * step, 6)
        found = found.astype(np.int64) if kind == "integer" else found
    cells = pd.Series(found, dtype=object if kind in ("category", "ordinal", "boolean") else None)
    return cells.mask(source.random(rows) < 0.2) if facts.get("missing") else cells


# -- kinds -----------------------------------------------------------------------------------------------------------


def _units(draw: st.DrawFn, learned: float) -> Any:
    units = draw(_UNITS)
    return {"learn": learned, "magnitude": units} if learned and draw(st.integers(0, 3)) == 0 else units


def _head(draw: st.DrawFn, kind: str, learned: float) -> dict[str, Any]:
    return {
        "doublure": 1,
        "kind": kind,
        "units": _units(draw, learned),
        "misfit": draw(st.sampled_from(["refuse", "coerce"])),
    }


def _most(draw: st.DrawFn, facts: dict[str, Any], *several: int) -> int:
    """Return how many records of each unit are used: units with several are refused where each is said to have one."""
    return max(draw(st.sampled_from([1, *several])), 2 if facts["misfit"] == "refuse" else 1)


def _roles(draw: st.DrawFn, of: dict[str, dict[str, Any]], learned: float) -> None:
    """Give columns roles, and conditions shares."""
    steering = [name for name, each in of.items() if each["type"] in ("category", "ordinal", "boolean")]
    listed = [name for name in steering if not isinstance(of[name].get("values"), dict)]
    for name in listed:
        if of[name]["missing"] is False and draw(st.integers(0, 2)) == 0:
            of[name]["roles"] = ["condition"]
            if learned and draw(st.integers(0, 3)) == 0:
                of[name]["shares"] = {"learn": learned}
    if draw(st.booleans()):
        target = draw(st.sampled_from(list(of)))
        if of[target]["type"] != "id":
            of[target]["roles"] = [*of[target].get("roles", []), "target"]


_QUICK_TABLES: dict[str, Any] = {"fit_steps": 20, "components": 16}


@st.composite
def tables(draw: st.DrawFn) -> World:
    """Draw a table."""
    epsilon = draw(EPSILON)
    learned = round(epsilon / 40, 4) if draw(st.integers(0, 2)) == 0 else 0.0
    facts = _head(draw, "table", learned)
    own = {f"c{place}": draw(columns(learned=learned)) for place in range(draw(st.integers(1, 5)))}
    _roles(draw, own, learned)
    if draw(st.integers(0, 2)) == 0:
        own["who"] = {"type": "id"}
        facts["unit"] = {"name": "person", "id": "who", "max_records": _most(draw, facts, 2, 5)}
    source = np.random.default_rng(draw(st.integers(0, 9)))
    if draw(st.integers(0, 2)) == 0:
        pair = draw(st.sampled_from([numbers("integer", spread=False), calendars()]))
        ends = draw(pair) | {"missing": draw(st.booleans())}
        own |= {"from": dict(ends), "to": dict(ends)}
        facts["constraints"] = [{"at_most": ["from", "to"]}]
    data = pd.DataFrame({name: cells(each, ROWS, source) for name, each in own.items() if name != "who"})
    if "constraints" in facts:
        known = data["from"].notna() & data["to"].notna()
        turned = known & (data["from"].where(known, data["to"].where(known)) > data["to"])
        data.loc[turned, ["from", "to"]] = data.loc[turned, ["to", "from"]].to_numpy()
    if "who" in own:
        data["who"] = source.integers(0, 30, ROWS)
    return World(facts | {"columns": own}, data, epsilon, _QUICK_TABLES)


@st.composite
def visits(draw: st.DrawFn) -> World:
    """Draw a table in which people have several rows, with what stays the same within one and what does not."""
    epsilon = draw(EPSILON)
    learned = round(epsilon / 60, 4) if draw(st.integers(0, 3)) == 0 else 0.0
    facts, source = _head(draw, "table", learned), np.random.default_rng(draw(st.integers(0, 9)))
    people = {f"p{place}": draw(columns(learned=learned)) for place in range(draw(st.integers(1, 3)))}
    _roles(draw, people, learned)
    own = people | {f"v{place}": draw(columns(learned=learned)) for place in range(draw(st.integers(1, 3)))}
    unit = {"name": "person", "id": "who", "max_records": draw(st.sampled_from([2, 5])), "per_unit": list(people)}
    if draw(st.booleans()):
        own["day"] = draw(st.one_of(numbers("integer", spread=False), calendars())) | {"missing": False}
        unit["order"] = "day"
    data = pd.DataFrame({name: cells(each, ROWS, source) for name, each in own.items()})
    data["who"] = source.integers(0, 30, ROWS)
    return World(facts | {"unit": unit, "columns": own | {"who": {"type": "id"}}}, data, epsilon, _QUICK_TABLES)


@st.composite
def related(draw: st.DrawFn) -> World:
    """Draw a root and one or two tables that hang on it."""
    epsilon = draw(EPSILON)
    learned = round(epsilon / 60, 4) if draw(st.integers(0, 3)) == 0 else 0.0
    facts, source = _head(draw, "relational", learned), np.random.default_rng(draw(st.integers(0, 9)))
    root = {f"c{place}": draw(columns(learned=learned)) for place in range(draw(st.integers(1, 3)))}
    _roles(draw, root, learned)
    facts["unit"] = {"name": "patient"}
    of = {"root": {"key": "nr", "columns": {"nr": {"type": "id"}} | root}}
    data = {
        "root": pd.DataFrame({name: cells(each, ROWS, source) for name, each in root.items()} | {"nr": np.arange(ROWS)})
    }
    for number in range(draw(st.integers(1, 2))):
        own = {f"d{place}": draw(columns(learned=learned)) for place in range(draw(st.integers(0, 3)))}
        most = draw(st.sampled_from([1, 2, 5]))
        table = {"parent": "root", "foreign_key": "nr", "max_children": most}
        if draw(st.booleans()):
            table["order"] = "when"
        if "order" in table or not own:
            own["when"] = draw(st.one_of(calendars(), numbers("integer", spread=False))) | {"missing": False}
        rows = ROWS * 2
        data[f"child{number}"] = pd.DataFrame(
            {name: cells(each, rows, source) for name, each in own.items()} | {"nr": source.integers(0, ROWS + 5, rows)}
        )
        of[f"child{number}"] = table | {"columns": {"nr": {"type": "id"}} | own}
    return World(facts | {"tables": of}, data, epsilon, _QUICK_TABLES)


@st.composite
def channels(draw: st.DrawFn, *, missing: bool, learned: float) -> dict[str, Any]:
    """Draw the facts of a channel."""
    kind = draw(st.sampled_from(["integer", "real", "states"]))
    facts: dict[str, Any]
    if kind == "states":
        facts = {
            "type": draw(st.sampled_from(["category", "ordinal"])),
            "values": ["off", "on", "idle"][: draw(st.integers(2, 3))],
        }
    else:
        facts = draw(numbers(kind, spread=False))
        if facts["bounds"][0] <= 0 <= facts["bounds"][1] and draw(st.booleans()):
            facts["zero_inflated"] = True
        elif learned and draw(st.integers(0, 2)) == 0:
            facts["bounds"] = {"learn": learned}
    return facts | {"missing": missing and draw(st.booleans())}


@st.composite
def series(draw: st.DrawFn) -> World:
    """Draw a set of series: several channels and attributes, gaps, ids, sources, moments, ends."""
    epsilon, source = draw(EPSILON), np.random.default_rng(draw(st.integers(0, 9)))
    learned = round(epsilon / 60, 4) if draw(st.integers(0, 3)) == 0 else 0.0
    facts, length = _head(draw, "series", learned), draw(st.sampled_from([2, 4, 12]))
    gaps = draw(st.sampled_from(["missing", "missing", "refuse", "drop"]))
    windows: dict[str, Any] = {"length": length, "gaps": gaps}
    many = draw(st.integers(1, 3 if length < 12 else 1))
    of = {f"x{place}": draw(channels(missing=gaps == "missing", learned=learned)) for place in range(many)}
    own: dict[str, Any] = {}
    for place in range(draw(st.integers(0, 3))):
        each = draw(
            st.one_of(
                choices(most=3), choices(most=3), numbers(draw(st.sampled_from(["integer", "real"])), spread=False)
            )
        )
        own[f"a{place}"] = each | {"missing": False}
    if own and draw(st.booleans()):
        name = draw(st.sampled_from(list(own)))
        own[name]["roles"] = ["target"]
    if ends := draw(st.integers(0, 3)) == 0:
        own["steps"] = {"type": "integer", "bounds": [1, length], "missing": False, "from_length": True}
    arrays: dict[str, Any] = {}
    for name, each in of.items():
        values = np.stack([cells(each | {"missing": False}, length, source) for _ in range(ROWS)])
        arrays[name] = values
    reached = source.integers(1, length + 1, ROWS) if ends else np.full(ROWS, length)
    attributes = {name: cells(each, ROWS, source) for name, each in own.items() if name != "steps"}
    timed, known = draw(st.booleans()), draw(st.booleans())
    unit: dict[str, Any] = {"name": "meter", "id": None}
    if known:
        unit |= {"id": "who", "max_records": _most(draw, facts, 3)}
    if timed:
        windows |= {
            "time": "t",
            "step": draw(st.sampled_from(["1h", "30min", "1d"])),
            "irregular": draw(st.sampled_from(["refuse", "mean", "sum", "last"])),
        }
        windows |= draw(st.sampled_from([{}, {"timezone": "Europe/Paris"}, {"stamp": "end"}]))
        if not known or draw(st.booleans()):
            windows["source"] = "place"
            unit = unit if known else {"name": "day", "id": "none"}
        if draw(st.booleans()):
            own["weekend"] = {"type": "boolean", "missing": False, "from_time": "weekend"}
    rows = []
    step = pd.Timedelta(windows.get("step", "1h").replace("d", "D"))
    window = step * length
    origin = pd.Timestamp("1970-01-05") + window * ((pd.Timestamp("2024-01-08") - pd.Timestamp("1970-01-05")) // window)
    for number in range(ROWS):
        about = {name: each.iloc[number] for name, each in attributes.items()}
        keys = {"who": number // 2} if known else {}
        begins = origin + window * (number % 4) + (step if windows.get("stamp") == "end" else pd.Timedelta(0))
        for place in range(reached[number]):
            now = {"t": begins + step * place, "place": number} if timed else {"series": number, "step": place}
            rows.append({**keys, **now, **about, **{name: values[number, place] for name, values in arrays.items()}})
    data = pd.DataFrame(rows)
    for name, each in of.items():
        if each["missing"]:
            data[name] = data[name].mask(source.random(len(data)) < 0.1)
    facts |= {"unit": unit, "series": windows, "channels": of, "attributes": own}
    return World(facts, data, epsilon, {})


@st.composite
def images(draw: st.DrawFn) -> World:
    """Draw a set of small images, with labels and without, grey and coloured."""
    epsilon, source = draw(EPSILON), np.random.default_rng(draw(st.integers(0, 9)))
    learned = round(epsilon / 40, 4) if draw(st.integers(0, 3)) == 0 else 0.0
    facts = _head(draw, "images", learned)
    shape = draw(st.sampled_from([[4, 4, 1], [8, 5, 1], [8, 8, 3], [16, 16, 1], [16, 17, 3], [40, 33, 1], [33, 40, 3]]))
    facts["images"] = {"shape": shape} | draw(
        st.sampled_from([{}, {"pictures": "drawings"}, {"pictures": "photographs"}])
    )
    data = {"images": source.integers(0, 256, (ROWS, *shape)).astype(np.uint8)}
    if size := draw(st.sampled_from([0, 1, 2, 10])):
        facts["label"] = {"values": list(range(size))} | draw(st.sampled_from([{}, {"other": "Other"}]))
        if learned:
            facts["label"]["shares"] = {"learn": learned}
        data["labels"] = source.integers(0, size, ROWS)
    if draw(st.integers(0, 3)) == 0:
        facts["unit"] = {"name": "person", "id": "who", "max_records": _most(draw, facts, 3)}
        data["who"] = source.integers(0, 30, ROWS)
    return World(facts, data, epsilon, {})


KINDS: dict[str, Callable[[], st.SearchStrategy[World]]] = {
    "table": tables, "relational": related, "series": series, "images": images,
}  # fmt: skip


# -- what a sample may hold ------------------------------------------------------------------------------------------


def beside(schema: db.Schema, sample: Any) -> list[str]:
    """Return what in a sample is not as its schema says: names of columns, or of what else is wrong."""
    return BESIDE[schema.file_kind](schema, sample)


def _cells_beside(column: Any, found: pd.Series) -> bool:
    """Whether a cell of a column lies beside what the schema lists, bounds or allows to be missing."""
    known = found[found.notna()]
    if len(known) < len(found) and not column.may_be_missing:
        return True
    if not column.modelled:
        return False
    if not column.bounded:
        return not set(map(label, known)) <= set(map(label, column.domain))
    if column.clock is not None:
        since = pd.Timestamp("1970-01-01", tz=getattr(known.dt, "tz", None))
        known = (known.dt.tz_localize(None) if since.tz else known) - pd.Timestamp("1970-01-01")
        known = known // pd.Timedelta(days=1) if column.clock == "D" else known.dt.total_seconds()
    values = known.to_numpy(dtype=np.float64)
    low, high = column.ends
    steps = values / column.unit if column.unit else np.zeros(len(values))
    return bool(
        ((values < low - 1e-9) | (values > high + 1e-9)).any() or (np.abs(steps - np.round(steps)) > 1e-3).any()
    )


def _frame_beside(schema: Any, frame: pd.DataFrame) -> list[str]:
    wrong = [name for name, column in schema.columns.items() if _cells_beside(column, frame[name])]
    for rule in schema.constraints:
        first, second = (frame[name] for name in rule.at_most)
        wrong += ["at_most"] if (first > second).fillna(False).any() else []
    return wrong + ([] if list(frame) == list(schema.columns) else ["header"])


def _related_beside(schema: Any, frames: Mapping[str, pd.DataFrame]) -> list[str]:
    wrong = [f"{name}.{each}" for name in schema.tables for each in _frame_beside(schema.table(name), frames[name])]
    keys = frames[schema.root]["nr"]
    wrong += [] if keys.is_unique else ["keys"]
    for name in schema.children:
        own = frames[name]["nr"]
        fits = own.isin(keys).all() and own.value_counts().max() <= schema.most(name)
        wrong += [] if fits or own.empty else [name]
    return wrong


def _series_beside(schema: Any, sample: Any) -> list[str]:
    columns, ended = schema.columns, np.zeros(sample.values.shape[:2], dtype=bool)
    if schema.ends_at is not None:
        ended = np.arange(schema.length) >= sample.attributes[schema.ends_at].to_numpy()[:, None]
    wrong = []
    for place, name in enumerate(schema.channels):
        values = sample.values[:, :, place]
        gaps = np.isnan(values) & ~ended
        numbers = pd.Series(values[~np.isnan(values)])
        column = columns[name].model_copy(update={"missing": False})
        if name in schema.states:  # its values are places in the list
            numbers = column.cells_of(numbers.where(numbers.isin(range(len(schema.states[name]))), -1.0).to_numpy())
        wrong += [name] if _cells_beside(column, numbers) or (gaps.any() and not schema.may_be_missing(name)) else []
    return wrong + [name for name in schema.attributes if _cells_beside(columns[name], sample.attributes[name])]


def _images_beside(schema: Any, sample: Any) -> list[str]:
    wrong = [] if sample.images.shape[1:] == schema.shape and sample.images.dtype == np.uint8 else ["images"]
    if schema.label is not None:
        wrong += ["label"] if _cells_beside(schema.label, sample.labels) else []
    return wrong


BESIDE: dict[str, Callable[[Any, Any], list[str]]] = {
    "table": _frame_beside, "relational": _related_beside, "series": _series_beside, "images": _images_beside,
}  # fmt: skip
