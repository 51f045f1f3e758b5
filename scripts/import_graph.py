#!/usr/bin/env python3
"""Draw the imports between the folders of src/doublure, in the order of the import contract.

    python scripts/import_graph.py           # writes docs/import-graph.svg
    python scripts/import_graph.py --text    # prints the same arrows, a line a folder

Imports are read from the syntax tree, those within functions and for types included. An arrow is left out where others
lead the same way: a folder may import everything that can be reached from it. Dashed arrows run up.

Layout: rows in the order of the contract, crossings reduced by barycentres (Sugiyama, Tagawa & Toda 1981), and places
within a row by isotonic regression.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "doublure"
DRAWING = ROOT / "docs" / "import-graph.svg"

Edge = tuple[str, str]
Stop = tuple[Edge | str, int]
"""A box, or where an arrow passes a row: the name or the arrow, and the row."""


def contract() -> list[list[str]]:
    """Return the layers of the import contract, from the top."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[name.strip() for name in layer.split(":")] for layer in layers]


def imports(names: Sequence[str], source: Path = SOURCE) -> Counter[Edge]:
    """Count the modules of each folder that import another."""
    found = set()
    for path in sorted(source.rglob("*.py")):
        module = path.relative_to(source).with_suffix("").parts
        if module[0] in names:
            found |= {(module, other) for other in imported(path) if other in names and other != module[0]}
    return Counter((module[0], other) for module, other in found)


def imported(path: Path) -> Iterator[str]:
    """Yield the folders of the package that a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            found = [f"{node.module}.{each.name}" for each in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in found if name.startswith("doublure."))


@dataclass(frozen=True)
class Graph:
    """Arrows between folders.

    Attributes:
        rows: The folders, from the top; none imports another of its row.
        down: The arrows that no others stand for, and how many modules each counts.
        up: Those against the contract's order, which it lists as exceptions.
    """

    rows: list[list[str]]
    down: dict[Edge, int]
    up: dict[Edge, int]

    @property
    def arrows(self) -> set[Edge]:
        """All arrows that are drawn."""
        return {*self.down, *self.up}


def read_graph() -> Graph:
    """Return the graph of the source as it is."""
    names = [name for layer in contract() for name in layer]
    place = {name: number for number, name in enumerate(names)}
    counted = imports(names)
    down = {edge: n for edge, n in sorted(counted.items()) if place[edge[0]] < place[edge[1]]}
    up = {edge: n for edge, n in sorted(counted.items()) if edge not in down}
    rows: list[list[str]] = []
    for name in names:
        if rows and not any((above, name) in down for above in rows[-1]):
            rows[-1].append(name)
        else:
            rows.append([name])
    return Graph(rows, reduced(names, down), up)


def reduced(names: Sequence[str], down: Mapping[Edge, int]) -> dict[Edge, int]:
    """Return the transitive reduction: no arrow that a way through another folder stands for."""
    below: dict[str, set[str]] = {}
    for name in reversed(names):
        nexts = [other for one, other in down if one == name]
        below[name] = set(nexts).union(*(below[other] for other in nexts))
    return {
        (one, other): count
        for (one, other), count in down.items()
        if not any(other in below[way] for start, way in down if start == one)
    }


def as_text(graph: Graph) -> str:
    """Return the graph, a line a folder: what it imports, and how many of its modules do."""
    lines = []
    for row in graph.rows:
        for name in row:
            below = [f"{other} ({n})" for (one, other), n in graph.down.items() if one == name]
            above = [f"{other} ({n}, up)" for (one, other), n in graph.up.items() if one == name]
            lines.append(f"{name}: {', '.join(below + above) or '-'}")
    return "\n".join(lines)


# -- layout ------------------------------------------------------------------------------------------------------------

BOX_HEIGHT, ROW_HEIGHT, GAP, MARGIN = 30.0, 66.0, 26.0, 28.0
LETTER = 8.4
"""Width of a letter of a box, in pixels."""
SWEEPS = 24


@dataclass
class Layout:
    """Places of boxes, and of arrows between them.

    Attributes:
        rows: The stops of each row, from the left.
        ways: The stops of each arrow, from the top.
        x: The middle of each stop.
    """

    rows: list[list[Stop]]
    ways: dict[Edge, list[Stop]]
    x: dict[Stop, float] = field(default_factory=dict)

    def neighbours(self, stop: Stop, step: int) -> list[Stop]:
        """Return the stops that arrows join a stop with, in the row above (-1) or below (1)."""
        return self._joined[step].get(stop, [])

    def __post_init__(self) -> None:
        self._joined: dict[int, dict[Stop, list[Stop]]] = {-1: {}, 1: {}}
        for way in self.ways.values():
            for one, other in pairwise(way):
                self._joined[1].setdefault(one, []).append(other)
                self._joined[-1].setdefault(other, []).append(one)


def laid_out(graph: Graph) -> Layout:
    """Return places for boxes and arrows."""
    row_of = {name: number for number, row in enumerate(graph.rows) for name in row}
    ways: dict[Edge, list[Stop]] = {}
    for edge in [*graph.down, *graph.up]:
        top, bottom = sorted(edge, key=lambda name: row_of[name])
        between: list[Stop] = [(edge, row) for row in range(row_of[top] + 1, row_of[bottom])]
        ways[edge] = [(top, row_of[top]), *between, (bottom, row_of[bottom])]
    rows: list[list[Stop]] = [[(name, number) for name in row] for number, row in enumerate(graph.rows)]
    for way in ways.values():
        for stop in way[1:-1]:
            rows[stop[1]].append(stop)
    layout = Layout(rows, ways)
    order(layout)
    place(layout)
    return layout


def order(layout: Layout) -> None:
    """Order the stops of each row so that few arrows cross."""
    best, fewest = [list(row) for row in layout.rows], crossings(layout)
    for sweep in range(SWEEPS):
        step = -1 if sweep % 2 == 0 else 1
        for row in layout.rows if step < 0 else reversed(layout.rows):
            places = {stop: index for each in layout.rows for index, stop in enumerate(each)}
            row.sort(key=lambda stop: _mean([places[other] for other in layout.neighbours(stop, step)], places[stop]))
        if (now := crossings(layout)) < fewest:
            best, fewest = [list(row) for row in layout.rows], now
    layout.rows[:] = best


def crossings(layout: Layout) -> int:
    """Count pairs of arrows that cross between two rows."""
    places = {stop: index for row in layout.rows for index, stop in enumerate(row)}
    found = 0
    for row in layout.rows:
        lines = [(places[one], places[other]) for one in row for other in layout.neighbours(one, 1)]
        found += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(lines) for c, d in lines[:i])
    return found


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def width(stop: Stop) -> float:
    """Return the width of a box, or of a passing arrow."""
    return LETTER * len(stop[0]) + 26 if isinstance(stop[0], str) else 4.0


def place(layout: Layout) -> None:
    """Set each stop near the middle of its neighbours, without overlap, in the order of its row."""
    for row in layout.rows:
        layout.x.update(spread(row, [0.0] * len(row)))
    for sweep in range(4 * SWEEPS):
        for row in layout.rows if sweep % 2 == 0 else reversed(layout.rows):
            layout.x.update(spread(row, [wanted(layout, stop) for stop in row]))


def wanted(layout: Layout, stop: Stop) -> float:
    """Return where a stop would stand alone: a box amid its neighbours, an arrow that passes on a line of its own."""
    if isinstance(stop[0], str):
        near = [layout.x[other] for step in (-1, 1) for other in layout.neighbours(stop, step)]
        return _mean(near, layout.x[stop])
    way = layout.ways[stop[0]]
    ends = (layout.x[way[0]] + layout.x[way[-1]]) / 2
    return 0.9 * _mean([layout.x[each] for each in way[1:-1]], ends) + 0.1 * ends


def spread(row: Sequence[Stop], wanted: Sequence[float]) -> dict[Stop, float]:
    """Return the places nearest to those wanted that keep order and gaps, by isotonic regression."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (width(left) + width(right)) / 2 + GAP)
    pools: list[tuple[float, float, int]] = []  # mean, weight and number of stops that share one place
    for stop, want, offset in zip(row, wanted, offsets, strict=True):
        weight = 1.0 if isinstance(stop[0], str) else 4.0  # an arrow that passes stays straight
        mean, members = want - offset, 1
        while pools and pools[-1][0] > mean:
            other, more, joined = pools.pop()
            mean, weight, members = (mean * weight + other * more) / (weight + more), weight + more, members + joined
        pools.append((mean, weight, members))
    bases = [mean for mean, _, members in pools for _ in range(members)]
    return {stop: base + offset for stop, base, offset in zip(row, bases, offsets, strict=True)}


# -- drawing -----------------------------------------------------------------------------------------------------------

STYLE = """
    text { font: 14px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2937; }
    .box rect { fill: #ffffff; stroke: #94a3b8; stroke-width: 1.2; }
    .core rect { fill: #0f766e; stroke: #0f766e; }
    .core text { fill: #ffffff; font-weight: 600; }
    .note { font-size: 12px; fill: #64748b; }
    path { fill: none; stroke: #94a3b8; }
    .up { stroke: #c2410c; stroke-dasharray: 5 4; }
    marker path { fill: #64748b; stroke: none; }
    marker.against path { fill: #c2410c; }
""".strip("\n")
NOTES = (
    "An arrow points to what is imported. It is left out where others lead the same way.",
    "Thicker: more modules. Dashed: against the order. Filled: what a guarantee rests on.",
)
CORE = ("private", "ledger")
"""The folders that a guarantee rests on."""


def as_svg(graph: Graph) -> str:
    """Return the graph as SVG: a title stands on each arrow and box."""
    layout = laid_out(graph)
    left = min(x - width(stop) / 2 for stop, x in layout.x.items()) - MARGIN
    right = max(x + width(stop) / 2 for stop, x in layout.x.items()) + MARGIN
    height = MARGIN + ROW_HEIGHT * len(graph.rows) + MARGIN
    parts = [arrow(layout, edge, edge in graph.up, {**graph.down, **graph.up}[edge], left) for edge in layout.ways]
    for number, row in enumerate(graph.rows):
        parts += [box(name, layout.x[name, number] - left, middle(number)) for name in row]
    parts += [
        f'  <text class="note" x="{MARGIN:.0f}" y="{height - 10 + 18 * line:.0f}">{note}</text>'
        for line, note in enumerate(NOTES)
    ]
    height += MARGIN
    size = f'width="{right - left:.0f}" height="{height:.0f}" viewBox="0 0 {right - left:.0f} {height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "  <title>Imports between the folders of src/doublure</title>",
            f"  <style>\n{STYLE}\n  </style>",
            "  <defs>",
            *(
                f'    <marker id="{name}" class="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
                'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.5 8 4 0 7.5z"/></marker>'
                for name in ("along", "against")
            ),
            "  </defs>",
            f'  <rect width="{right - left:.0f}" height="{height:.0f}" rx="10" fill="#f8fafc"/>',
            *parts,
            "</svg>\n",
        ]
    )


def middle(row: int) -> float:
    """Return the height of a row's middle."""
    return MARGIN + ROW_HEIGHT * row + BOX_HEIGHT / 2


def box(name: str, x: float, y: float) -> str:
    """Return a folder, drawn."""
    wide = width((name, 0))
    return (
        f'  <g class="box{" core" if name in CORE else ""}"><rect x="{x - wide / 2:.1f}" y="{y - BOX_HEIGHT / 2:.1f}" '
        f'width="{wide:.1f}" height="{BOX_HEIGHT:.0f}" rx="7"/>'
        f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{name}</text></g>'
    )


def arrow(layout: Layout, edge: Edge, up: bool, count: int, left: float) -> str:
    """Return an import, drawn from the box that imports."""
    way = layout.ways[edge]
    half = BOX_HEIGHT / 2
    points = [(port(layout, way[0], way[1], 1), middle(way[0][1]) + half)]
    for stop in way[1:-1]:  # straight past the boxes of a row, curved between rows
        points += [(layout.x[stop], middle(stop[1]) - half), (layout.x[stop], middle(stop[1]) + half)]
    points.append((port(layout, way[-1], way[-2], -1), middle(way[-1][1]) - half))
    (x, y), *rest = [(x - left, y) for x, y in (reversed(points) if up else points)]
    curve = f"M{x:.1f} {y:.1f}"
    for to, level in rest:
        curve += f" C{x:.1f} {(y + level) / 2:.1f} {to:.1f} {(y + level) / 2:.1f} {to:.1f} {level:.1f}"
        x, y = to, level
    thick = 1.2 + min(count, 36) ** 0.5 * 0.45
    kind = ("against", ' class="up"') if up else ("along", "")
    return (
        f'  <path{kind[1]} d="{curve}" stroke-width="{thick:.1f}" marker-end="url(#{kind[0]})">'
        f"<title>{edge[0]} imports {edge[1]}</title></path>"
    )


def port(layout: Layout, stop: Stop, towards: Stop, step: int) -> float:
    """Return where an arrow leaves or reaches a box: side by side, in the order of where they go."""
    ends = sorted(layout.neighbours(stop, step), key=lambda other: layout.x[other])
    room = min(16.0, (width(stop) - 20) / max(1, len(ends) - 1))
    return layout.x[stop] + room * (ends.index(towards) - (len(ends) - 1) / 2)


def main() -> None:
    """Write the drawing, or print the graph."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", action="store_true", help="print the graph, a line a folder")
    graph = read_graph()
    if parser.parse_args().text:
        sys.stdout.write(as_text(graph) + "\n")
    else:
        DRAWING.write_text(as_svg(graph), encoding="utf-8")


if __name__ == "__main__":
    main()
