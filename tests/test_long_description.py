"""What an index of packages shows of the README: no link of it leads nowhere."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def described(monkeypatch):
    """Return the hook's function, with or without the builder in this environment."""
    if not (ROOT / "hatch_build.py").is_file():
        pytest.skip("needs a checkout")
    interface = types.ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.described


TEXT = "# A\n\n![Bars](docs/a.png)\n\nSee [docs](docs/b.md#c), [here](#d) and [there](https://x.org/e).\n"


def test_without_a_known_source_links_are_words_and_pictures_go(described):
    assert described(TEXT, None) == "# A\n\nSee docs, [here](#d) and [there](https://x.org/e).\n"


def test_with_a_source_they_are_absolute(described):
    text = described(TEXT, "https://x.org/blob/main/")
    assert "![Bars](https://x.org/blob/main/docs/a.png)" in text
    assert "[docs](https://x.org/blob/main/docs/b.md#c)" in text
    assert "[here](#d) and [there](https://x.org/e)" in text
