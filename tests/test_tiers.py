"""The tiers of the suite: what each leaves out."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
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


def test_a_search_is_whole_where_everything_runs(tier):
    tier()
    assert (tiers.examples(250).max_examples, tiers.examples(20).max_examples, tiers.by_tier(3, 1)) == (50, 10, 3)
    tier("ALL")
    assert (tiers.examples(250).max_examples, tiers.examples(20).max_examples, tiers.by_tier(3, 1)) == (250, 20, 1)
