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


@pytest.mark.parametrize(("name", "kept"), [("", ["short"]), ("QUICK", ["short"]), ("ALL", ["long", "short"])])
def test_what_is_exhaustive_runs_where_everything_does(hooks, tier, name, kept):
    tier(name)
    long = SimpleNamespace(name="long", get_closest_marker=lambda marker: marker == "exhaustive")
    items, gone = [long, SimpleNamespace(name="short", get_closest_marker=lambda marker: None)], []
    told = SimpleNamespace(pytest_deselected=lambda items: gone.extend(items))
    hooks.pytest_collection_modifyitems(SimpleNamespace(hook=told), items)
    assert [item.name for item in items] == kept
    assert gone == ([] if name == "ALL" else [long])


def test_a_search_is_whole_where_everything_runs(tier):
    tier()
    assert (tiers.examples(250).max_examples, tiers.examples(20).max_examples, tiers.by_tier(3, 1)) == (50, 10, 3)
    tier("ALL")
    assert (tiers.examples(250).max_examples, tiers.examples(20).max_examples, tiers.by_tier(3, 1)) == (250, 20, 1)
