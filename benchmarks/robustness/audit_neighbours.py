"""Random neighbours: small data sets of every kind, their schemas, and one unit more that is unlike all others.

Whatever a unit holds is coerced, so that no unit may refuse a fit, or change how another one is read. Schemas, plans,
the way to the data (frames, CSV files, folders of images; held, or in partitions of a few records) and the unit's place
are drawn, too.
"""

from __future__ import annotations

import datetime
import decimal
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from audit_replay import Neighbours
from PIL import Image

import doublure as db

EPSILON, DELTA = 30.0, 1e-3
_FEW: dict[str, Any] = {"components": 2, "fit_steps": 2, "starts": 1}
_SHORT = datetime.datetime(2024, 3, 4)
ODD: tuple[Any, ...] = (
    1, 0, -5, "1", "u", "", None, True, False, float("nan"), float("inf"), -float("inf"), 10**30, -(10**30), 1e308,
    1e-320, "x,y", '"', 'a"b', "2001-01-01", "2001-01-01T12:00:00Z", decimal.Decimal("1.10"), decimal.Decimal("NaN"),
    datetime.date(2005, 5, 5), _SHORT, _SHORT.replace(tzinfo=datetime.UTC), b"x", [1], {"a": 1}, "a\0b", "é" * 400,
    "1e400", "NaN", "NA", "null", "0x10", "1_000", "１", "+5", " 5 ", "1,5", complex(1, 2), np.float32(1.1),
    np.int8(3), pd.NaT, pd.NA, "\ud800", 2**70, "٣",
)  # fmt: skip
STAMPS: tuple[Any, ...] = (
    "2024-03-31T02:30", "x", None, "9999-12-31T23:00", "0001-01-01", "2024-03-30T00:00+05:00", _SHORT, 5, True,
    "2024-03-30T25:00", pd.Timestamp("1677-09-22"), np.datetime64("2024-03-30"), "24:00",
)  # fmt: skip
STEPS: tuple[Any, ...] = (0, 1, 2, 3, "2", None, 7, -1, 1.5, float("inf"), True, 2**63, [1])


class Drawn:
    """What is drawn, of one seed.

    Args:
        seed: Of all of it.
    """

    def __init__(self, seed: int | Sequence[int]) -> None:
        self.numbers = np.random.default_rng(seed)

    def one(self, of: Iterable[Any]) -> Any:
        """Return one of some."""
        choices = list(of)
        return choices[int(self.numbers.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        """Return whether it came to it."""
        return bool(self.numbers.random() < share)

    def learned(self, declared: str, epsilon: float = 0.5) -> str:
        """Return a fact that is declared, or learned."""
        return f"{{learn: {epsilon}}}" if self.chance(0.4) else declared


def _planned(text: str, settings: Mapping[str, Any]) -> db.Plan:
    return db.plan(
        db.Schema.parse(text), method="statistics", epsilon=EPSILON, delta=DELTA, accountant="rdp", **settings
    )


def _frame(records: list[dict[str, Any]]) -> pd.DataFrame:
    """Return cells as they are, whatever their types."""
    return pd.DataFrame({name: pd.Series([each[name] for each in records], dtype=object) for name in records[0]})


def _beside(base: pd.DataFrame, more: list[dict[str, Any]], at: int) -> pd.DataFrame:
    if not more:
        return base
    return pd.concat([base.iloc[:at], _frame(more)[list(base)], base.iloc[at:]], ignore_index=True)


def _units(draw: Drawn, size: int) -> str:
    return f"{{learn: 0.5, magnitude: {size}}}" if draw.chance(0.4) else str(size)


# -- tables ------------------------------------------------------------------------------------------------------------


def table(draw: Drawn, folder: Path) -> Neighbours:
    """Return a table of every kind of column, as a frame or as CSV, whose units have up to three records."""
    most, bound, rows = draw.one([1, 1, 2, 3]), draw.chance(0.3), 30
    unit = "{name: person}" if most == 1 else f"{{name: person, id: pid, max_records: {most}}}"
    declared = "missing: false"
    text = f"""
doublure: 1
kind: table
misfit: coerce
unit: {unit}
units: {_units(draw, 40)}
columns:
{"" if most == 1 else "  pid: {type: id}"}
  a: {{type: category, values: {draw.learned("[u, v]")}, other: o, missing: {draw.learned("true")}}}
  b: {{type: boolean, {declared if bound else f"missing: {draw.learned('false')}"}}}
  c: {{type: integer, bounds: {draw.learned("[0, 9]")}, missing: {draw.one(["true", "false"])}}}
  d: {{type: date, bounds: {draw.learned("[2000-01-01, 2020-01-01]")}, missing: true}}
  e: {{type: real, bounds: {draw.learned("[0, 100]")}, precision: 2, missing: true}}
  f: {{type: ordinal, values: [1, 2, 3], missing: false}}
{"constraints: [{implies: {when: {b: true}, then: {f: [1, 2]}}}]" if bound else ""}
"""
    to_csv = draw.chance(0.5)
    odd = [each for each in ODD if not to_csv or _fits_a_line(each)]
    several = draw.one([1, 2])
    base = _frame([
        {"pid": f"p{row // several}", "a": draw.one("uvw"), "b": draw.chance(0.5), "c": draw.one(range(13)),
         "d": f"20{draw.one(range(20)):02d}-01-01", "e": round(100 * draw.numbers.random(), 2),
         "f": draw.one([1, 2, 3])}
        for row in range(rows)
    ])  # fmt: skip
    own = draw.one(["zz", "new", 7, True, 1.0])
    count = 1 if most == 1 else draw.one([1, 2, 6])
    more = [{name: draw.one(odd) for name in "abcdef"} | {"pid": own} for _ in range(count)]
    there = _beside(base, more, draw.one([0, rows, draw.one(range(rows))]))
    if most == 1:
        base, there = base.drop(columns="pid"), there.drop(columns="pid")
    about = f"{[str(cell)[:12] for cell in more[0].values()]}, {count} records of {most}"
    without, with_it = (_as_csv(each, folder / name) if to_csv else each for each, name in
                        ((base, "without"), (there, "there")))  # fmt: skip
    return Neighbours(
        plan=_planned(text, _FEW), without=without, there=with_it, about=about,
        parts=draw.one([3, 5, 2**16]) if draw.chance(0.6) else None,
    )  # fmt: skip


def _fits_a_line(cell: Any) -> bool:
    """Return whether a cell can stand in a line of UTF-8."""
    return not any(sign in str(cell) for sign in ("\n", "\r", "\0", "\ud800"))


def _as_csv(frame: pd.DataFrame, folder: Path) -> str:
    folder.mkdir(parents=True)
    path = folder / "records.csv"  # its name is told in run.json
    frame.to_csv(path, index=False)
    return str(path)


# -- related tables ----------------------------------------------------------------------------------------------------


def related(draw: Drawn, folder: Path) -> Neighbours:
    """Return a root with two children, and one more root row with any key and up to forty rows that hang on it."""
    above = draw.chance(0.3)  # a child's number lies above its parent's, whose bounds are declared then
    text = f"""
doublure: 1
kind: relational
misfit: coerce
unit: {{name: patient}}
units: {_units(draw, 40)}
tables:
  patients:
    key: nr
    columns:
      nr: {{type: id}}
      sex: {{type: category, values: [f, m], other: o, missing: false}}
      born: {{type: integer, bounds: {"[0, 100]" if above else draw.learned("[0, 100]")}, missing: true}}
  stays:
    parent: patients
    foreign_key: nr
    max_children: 3
    order: day
    columns:
      nr: {{type: id}}
      day: {{type: integer, bounds: [0, 99], missing: false}}
      ward: {{type: category, values: {draw.learned("[a, b]")}, other: zz, missing: {draw.learned("true", 0.3)}}}
      cost: {{type: real, bounds: {draw.learned("[0, 50]")}, missing: {draw.learned("true", 0.3)}}}
  visits:
    parent: patients
    foreign_key: nr
    max_children: 2
    columns:
      nr: {{type: id}}
      kind: {{type: category, values: [p, q], missing: false}}
{"constraints: [{at_most: [patients.born, stays.day]}]" if above else ""}
"""
    units = 24
    patients = _frame([
        {"nr": f"p{number}", "sex": draw.one("fm"), "born": draw.one([None, *range(100)])} for number in range(units)
    ])  # fmt: skip
    stays = _frame([
        {"nr": f"p{number}", "day": draw.one(range(99)), "ward": draw.one("ab"), "cost": 50 * draw.numbers.random()}
        for number in range(units) for _ in range(draw.one(range(5)))
    ])  # fmt: skip
    visits = _frame([{"nr": f"p{n}", "kind": draw.one("pq")} for n in range(units) for _ in range(draw.one(range(4)))])
    key, again, hanging = draw.one([99, *ODD]), draw.one([1, 1, 1, 3]), draw.one([0, 1, 2, 3, 5, 40])
    place = draw.one([0, -1])  # before all others or behind them

    def beside(base: pd.DataFrame, more: list[dict[str, Any]]) -> pd.DataFrame:
        return _beside(base, more, len(base) if place else 0)

    there = {
        "patients": beside(patients, [{"nr": key, "sex": draw.one(ODD), "born": draw.one(ODD)} for _ in range(again)]),
        "stays": beside(
            stays, [{"nr": key, "day": draw.one(ODD), "ward": draw.one(ODD), "cost": draw.one(ODD)}
                    for _ in range(hanging)],
        ),
        "visits": beside(visits, [{"nr": key, "kind": draw.one(ODD)} for _ in range(draw.one([0, 1, 2, 7]))]),
    }  # fmt: skip
    return Neighbours(
        plan=_planned(text, {**_FEW, "groups": 2}), parts=None,
        without={"patients": patients, "stays": stays, "visits": visits}, there=there,
        about=f"key {str(key)[:12]!r}, {again} rows, {hanging} stays",
    )  # fmt: skip


# -- series ------------------------------------------------------------------------------------------------------------


def series(draw: Drawn, folder: Path) -> Neighbours:
    """Return series by steps or by the clock, and one more unit: of any cells, or with more series than are used."""
    has_ids, by_clock, gaps, ends = (draw.chance(share) for share in (0.7, 0.4, 0.6, 0.3))
    most = draw.one([1, 2])
    unit = f"{{name: meter, id: m, max_records: {most}}}" if has_ids else "{name: meter, id: null}"
    clock = "time: t, step: 6h, timezone: Europe/Paris, source: src, " if by_clock else ""
    text = f"""
doublure: 1
kind: series
misfit: coerce
unit: {unit}
units: {_units(draw, 30)}
series: {{{clock}length: 4, gaps: {"missing" if gaps else draw.one(["drop", "missing", "refuse"])}, """
    text += f"""irregular: {draw.one(["mean", "sum", "last", "refuse"])}}}
channels:
  x: {{type: real, bounds: {draw.learned("[0, 100]")}, precision: 1, missing: {str(gaps).lower()}}}
  y: {{type: integer, bounds: [0, 50], missing: false}}
attributes:
  g: {{type: category, values: [a, b], other: o, missing: false}}
{"  n: {type: integer, bounds: [1, 4], missing: false, from_length: true}" if ends else ""}
"""
    whole = {} if ends else draw.one([{}, {"level_groups": 2, "grouped": ("g",)}, {"calm": True}])
    settings = draw.one([whole, {"own_tables": True, "grouped": ("g",)}])
    base = [each for number in range(12) for each in _of_one(draw, f"m{number}", number % 2, by_clock)]
    wild = draw.chance(0.5)
    own = draw.one(ODD) if wild else "T"
    more: list[dict[str, Any]] = []
    for _ in range(draw.one([1, 4, 9]) if wild else 1):
        new = _of_one(draw, own, 0, by_clock)
        more += [new[0] | _wild(draw, by_clock)] if wild else new
    if not wild and has_ids and not by_clock:
        more += [{**each, "series": f"other {number}"} for number in range(2) for each in more]  # more than are used
    frame = _frame(base)
    return Neighbours(
        plan=_planned(text, settings), parts=None, without=frame,
        there=_beside(frame, more, draw.one([0, len(frame)])),
        about=f"{'wild cells' if wild else 'whole series'} of {str(own)[:12]!r}, {len(more)} readings",
    )  # fmt: skip


def _of_one(draw: Drawn, own: Any, group: int, by_clock: bool) -> list[dict[str, Any]]:
    """Return four readings of one unit."""
    when: list[dict[str, Any]] = (
        [{"src": own, "t": f"2024-03-30T{hour:02d}:00"} for hour in (0, 6, 12, 18)] if by_clock
        else [{"series": f"of {own}", "step": step} for step in range(4)]
    )  # fmt: skip
    return [
        {"m": own, **at, "x": round(100 * draw.numbers.random(), 1), "y": draw.one(range(50)), "g": "ab"[group], "n": 4}
        for at in when
    ]


def _wild(draw: Drawn, by_clock: bool) -> dict[str, Any]:
    """Return cells that may be anything."""
    at = {"t": draw.one(STAMPS)} if by_clock else {"step": draw.one(STEPS)}
    return {**at, "x": draw.one(ODD), "y": draw.one(ODD), "g": draw.one(ODD), "n": draw.one([4, 1, 0, 9, None, "x"])}


# -- images ------------------------------------------------------------------------------------------------------------


def images(draw: Drawn, folder: Path) -> Neighbours:
    """Return a folder of images, and one more file: another size, another mode, cut short, or none."""
    channels = draw.one([1, 3])
    text = f"""
doublure: 1
kind: images
misfit: coerce
unit: {{name: person}}
units: {"{learn: 1.0, magnitude: 30}" if draw.chance(0.4) else 30}
images: {{shape: [8, 8, {channels}]{draw.one(["", ", pictures: drawings", ", pictures: photographs"])}
         {draw.one(["", ", on_mismatch: resize"])}}}
label: {{values: [a, b]{draw.one(["", ", other: a"])}}}
"""
    settings: Any = draw.one([
        {"model": "gaussian"}, {"model": "network", "fit_steps": 2, "batch": 4, "features": 16}
    ])  # fmt: skip
    files = {f"{'ab'[number % 2]}/i{number:02d}.png": _encoded(_pixels(draw, channels)) for number in range(16)}
    name = draw.one(list(_FILES))
    more = {f"{draw.one(['a', 'b', 'new', ' a'])}/{draw.one(['0first', 'zlast', 'i05x'])}.png": _FILES[name](draw)}
    for world, held in (("without", files), ("there", files | more)):
        for path, content in held.items():
            (folder / world / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / world / path).write_bytes(content)
    return Neighbours(
        plan=_planned(text, settings), parts=None, about=f"{name} at {next(iter(more))}",
        without=str(folder / "without"), there=str(folder / "there"),
    )  # fmt: skip


def _pixels(draw: Drawn, channels: int, height: int = 8, width: int = 8) -> np.ndarray[Any, Any]:
    shape = (height, width, channels) if channels > 1 else (height, width)
    return draw.numbers.integers(0, 255, shape, dtype=np.uint8)


def _encoded(pixels: np.ndarray[Any, Any], mode: str | None = None, form: str = "PNG", **more: Any) -> bytes:
    image, written = Image.fromarray(pixels), io.BytesIO()
    (image if mode is None else image.convert(mode)).save(written, format=form, **more)
    return written.getvalue()


def _turned(draw: Drawn) -> bytes:
    exif = Image.Exif()
    exif[274] = 6  # a quarter turn
    return _encoded(_pixels(draw, 3, 8, 16), form="JPEG", exif=exif)


_FILES: dict[str, Callable[[Drawn], bytes]] = {
    "an image": lambda draw: _encoded(_pixels(draw, 3)),
    "a grey one": lambda draw: _encoded(_pixels(draw, 1)),
    "transparent": lambda draw: _encoded(_pixels(draw, 3), "RGBA"),
    "by a palette": lambda draw: _encoded(_pixels(draw, 3), "P"),
    "grey and transparent": lambda draw: _encoded(_pixels(draw, 1), "LA"),
    "black and white": lambda draw: _encoded(_pixels(draw, 1), "1"),
    "of sixteen bits": lambda draw: _encoded(draw.numbers.integers(0, 65535, (8, 8)).astype(np.uint16)),
    "large": lambda draw: _encoded(_pixels(draw, 3, 64, 64)),
    "tall": lambda draw: _encoded(_pixels(draw, 3, 40, 3)),
    "of one pixel": lambda draw: _encoded(_pixels(draw, 3, 1, 1)),
    "a GIF": lambda draw: _encoded(_pixels(draw, 3), "P", form="GIF"),
    "a JPEG": lambda draw: _encoded(_pixels(draw, 3), form="JPEG"),
    "a JPEG of inks": lambda draw: _encoded(_pixels(draw, 3), "CMYK", form="JPEG"),
    "a turned JPEG": _turned,
    "cut short": lambda draw: _encoded(_pixels(draw, 3))[:60],
    "empty": lambda draw: b"",
    "a text": lambda draw: b"hello",
    "vast by its header": lambda draw: _encoded(_pixels(draw, 3, 1, 1)).replace(
        b"\0\0\0\1\0\0\0\1", b"\0\1\0\0\0\1\0\0", 1
    ),
}

KINDS: dict[str, Callable[[Drawn, Path], Neighbours]] = {
    "table": table, "relational": related, "series": series, "images": images,
}  # fmt: skip
