"""The drawing of the imports is that of the source, and ``scripts/import_graph.py`` draws what there is."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawer():
    script = ROOT / "scripts" / "import_graph.py"
    if not script.is_file():
        pytest.skip("needs the scripts of a checkout")
    spec = importlib.util.spec_from_file_location("import_graph", script)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def graph(drawer):
    return drawer.read_graph()


def _drawn(text):
    """Return the arrows and the boxes of a drawing."""
    root = ElementTree.fromstring(text)
    arrows = {tuple(path.find(f"{SVG}title").text.split(" imports ")) for path in root.findall(f"{SVG}path")}
    return arrows, {group.find(f"{SVG}text").text for group in root.findall(f"{SVG}g")}


def test_the_drawing_is_of_today(drawer, graph):
    arrows, boxes = _drawn(drawer.DRAWING.read_text(encoding="utf-8"))
    assert arrows == graph.arrows, "python scripts/import_graph.py"
    assert boxes == {name for row in graph.rows for name in row}
    assert "(import-graph.svg)" in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_a_graph_is_drawn_the_same_each_time(drawer):
    graph = drawer.Graph([["a"], ["b", "long"], ["c"]], {("a", "b"): 3, ("b", "c"): 1, ("a", "c"): 1}, {("c", "a"): 1})
    svg = drawer.as_svg(graph)
    assert drawer.as_svg(graph) == svg
    assert _drawn(svg) == ({("a", "b"), ("b", "c"), ("a", "c"), ("c", "a")}, {"a", "b", "long", "c"})
    assert drawer.as_text(graph) == "a: b (3), c (1)\nb: c (1)\nlong: -\nc: a (1, up)"


def test_what_others_stand_for_is_left_out(drawer):
    down = {("a", "b"): 1, ("b", "c"): 1, ("a", "c"): 5, ("a", "d"): 1}
    assert drawer.reduced("abcd", down) == {edge: down[edge] for edge in (("a", "b"), ("b", "c"), ("a", "d"))}


def test_imports_are_read_from_the_tree(drawer, tmp_path):
    (tmp_path / "cli").mkdir()
    code = "import doublure.data.npz\ndef f():\n    from doublure import errors\n    from doublure.cli.fit import fit\n"
    (tmp_path / "cli" / "fit.py").write_text(code)
    (tmp_path / "cli" / "plan.py").write_text("from doublure.errors import InputError\nimport numpy\n")
    assert drawer.imports(["cli", "data", "errors"], tmp_path) == {("cli", "data"): 1, ("cli", "errors"): 2}


def test_boxes_of_a_row_do_not_overlap(drawer, graph):
    layout = drawer.laid_out(graph)
    for row in layout.rows:
        for one, other in pairwise(row):
            between = (drawer.width(one) + drawer.width(other)) / 2
            assert layout.x[other] - layout.x[one] >= between + drawer.GAP - 1e-6
