"""The tiers of the suite: what each leaves out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import quick_estimates
import quick_figures
import rehearsals
import tiers

HERE = Path(__file__).parent


@pytest.fixture
def hooks(request):
    """Return the hooks of the suite."""
    return request.config.pluginmanager.get_plugin(str(HERE / "conftest.py"))


@pytest.fixture
def tier(monkeypatch):
    """Return a function that chooses one."""

    def chosen(name=""):
        for each in ("ALL", "QUICK"):
            monkeypatch.setattr(tiers, each, each == name)

    return chosen


def test_what_the_quick_tier_leaves_out_is_there(hooks, tier):
    tier("QUICK")
    for name in tiers.LONG:
        assert (HERE / name).exists()
        assert hooks.pytest_ignore_collect(HERE / name)
    assert hooks.pytest_ignore_collect(HERE / "cli" / "test_help.py")
    for other in ("", "ledger", "private/test_mechanism.py", "test_tiers.py"):
        assert not hooks.pytest_ignore_collect(HERE / other)
    for name in ("", "ALL"):
        tier(name)
        assert not hooks.pytest_ignore_collect(HERE / "cli")


class Item:
    """A test that was collected."""

    def __init__(self, nodeid, *marks):
        self.nodeid, self.marks = nodeid, marks

    def get_closest_marker(self, name):
        return name in self.marks


@pytest.mark.parametrize(
    ("name", "kept"),
    [("", ["a::one", "a::two[x]", "a::two[y]", "b::two[x]"]), ("QUICK", ["a::one", "a::two[x]", "b::two[x]"]),
     ("ALL", ["a::long", "a::one", "a::two[w]", "a::two[x]", "a::two[y]", "b::two[x]"])],
)  # fmt: skip
def test_a_tier_keeps_what_it_is_made_of(hooks, tier, name, kept):
    """What is exhaustive runs where everything does; of several cases the quick tier runs the first it may."""
    tier(name)
    items = [
        Item("a::long", "exhaustive"), Item("a::one"), Item("a::two[w]", "exhaustive"), Item("a::two[x]"),
        Item("a::two[y]"), Item("b::two[x]"),
    ]  # fmt: skip
    every, gone = list(items), []
    told = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    hooks.pytest_collection_modifyitems(SimpleNamespace(hook=told), items)
    assert [item.nodeid for item in items] == kept
    assert gone == [item for item in every if item not in items]


def test_the_longest_files_begin_and_each_stays_together():
    tests = ["a.py::one", "b/c.py::one[x]", "d.py::one", "cli/test_help.py::one", "a.py::two", "b/c.py::two"]
    items = [Item(f"tests/{name}") for name in tests]
    found = [item.nodeid for item in tiers.longest_first(items, {"d.py": 3.5, "b/c.py": 9})]
    assert found == [f"tests/{tests[place]}" for place in (1, 5, 2, 3, 0, 4)]  # cli is long, and a.py not


def test_seconds_are_kept_beside_what_is_known_of_other_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tiers, "SECONDS", tmp_path / "seconds.json")
    tiers.SECONDS.write_text('{"test_docs.py": 12, "test_tiers.py": 7, "test_gone.py": 40, "test_links.py": 3}')
    taken = {"tests/test_tiers.py::one": 1.2, "tests/test_tiers.py::two[x]": 0.7, "tests/test_links.py::one": 0.4}
    reports = [SimpleNamespace(nodeid=name, duration=seconds / 2) for name, seconds in taken.items() for _ in range(2)]
    tiers.keep_seconds(reports)
    assert tiers.kept_seconds() == {"test_docs.py": 12, "test_tiers.py": 2}
    assert tiers.SECONDS.read_text().splitlines()[1] == '  "test_docs.py": 12,'


def test_the_seconds_that_are_kept_are_of_files_that_there_are():
    assert all((HERE / name).is_file() and seconds >= 1 for name, seconds in tiers.kept_seconds().items())


def test_each_value_of_crossed_parameters_runs_in_the_usual_tier():
    cases = tiers.crossed("ab", [1, 2, 3])
    assert [case.values for case in cases] == [(one, other) for one in "ab" for other in (1, 2, 3)]
    assert [case.values for case in cases if not case.marks] == [("a", 1), ("a", 3), ("b", 2)]


@pytest.mark.parametrize(("test", "drawn"), [("methods/test_statistics.py", 20_000), ("cli/test_verbs.py", 500)])
def test_fits_draw_few_rows_where_nobody_looks_at_them(request, test, drawn):
    from doublure.methods.statistics.tables import work

    assert all(
        (HERE / name).exists() for name in (*quick_estimates.WHOLE, *quick_estimates.COUNTED, *rehearsals.REHEARSED)
    )
    try:
        quick_estimates.choose(HERE / test)
        assert work.rows_drawn(1) == (20_000 if tiers.ALL else drawn)
    finally:
        quick_estimates.choose(request.path)


@pytest.mark.parametrize(("test", "drawn"), [("report/test_page.py", True), ("cli/test_verbs.py", False)])
def test_figures_are_drawn_where_pages_are_tested(request, test, drawn):
    from doublure.report import drawing, plots

    assert all((HERE / name).exists() for name in quick_figures.DRAWN)
    try:
        quick_figures.choose(HERE / test)
        assert (plots.draw is drawing.draw) == (drawn or tiers.ALL)
    finally:
        quick_figures.choose(request.path)


def test_a_figure_that_is_not_drawn_is_painted_and_told():
    painted = []
    svg = quick_figures.painted(3, 2, "key", 'Ages, "real"', painted.append)
    assert svg == '<svg role="img" aria-label="Ages, &#34;real&#34;"></svg>'
    assert [type(axes).__name__ for axes in painted] == ["Axes"]


def test_a_search_is_whole_where_everything_runs(tier):
    tier()
    assert (tiers.examples(250).max_examples, tiers.examples(20).max_examples, tiers.by_tier(3, 1)) == (50, 10, 3)
    tier("ALL")
    assert (tiers.examples(250).max_examples, tiers.examples(20).max_examples, tiers.by_tier(3, 1)) == (250, 20, 1)
