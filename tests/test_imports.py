"""Each package is whole by itself: whoever imports one first gets it, whatever else was imported before, or nothing."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiers import by_tier

import doublure

SOURCE = Path(doublure.__file__).parent
PACKAGES = sorted(
    ".".join(["doublure", *path.parent.relative_to(SOURCE).parts]) for path in SOURCE.rglob("__init__.py")
)
# Of our own modules nothing is left between two of them, but schemas where they came alone and know nothing of what is
# next; those of others stay, which take the time.
EACH_ALONE = """
import importlib, json, sys
failed, kept = {}, {}
for name in json.loads(sys.argv[1]):
    for known in [known for known in sys.modules if known.split(".")[0] == "doublure"]:
        del sys.modules[known]
    for known, (module, told) in kept.items() if name not in kept else ():
        vars(module).clear()
        vars(module).update(told)
        sys.modules[known] = module
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
    if name == "doublure.schema" and name not in failed:
        kept = {known: (each, {**vars(each)}) for known, each in sys.modules.items() if known.startswith("doublure")}
print(json.dumps(failed))
"""


def alone(names):
    """Return which modules cannot be imported when they are the first, and why."""
    done = subprocess.run(
        [sys.executable, "-c", EACH_ALONE, json.dumps(names)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_each_package_and_each_attack_is_imported_alone():
    attacks = [f"doublure.attack.{path.stem}" for path in (SOURCE / "attack").glob("[a-z]*.py")]
    assert {"doublure", "doublure.attack", "doublure.evaluate", "doublure.report"} <= set(PACKAGES)
    above = [name for name in PACKAGES if name.count(".") < 2]  # which import those below them
    assert alone(["doublure.schema", *by_tier(above, PACKAGES), *attacks]) == {}


ABOVE = {
    "measures": {"attack", "report", "evaluate", "auditing", "releasing"},
    "attack": {"report", "evaluate", "auditing", "releasing"},
    "report": {"evaluate", "auditing", "releasing"},
    "evaluate": {"auditing", "releasing"},
    "auditing": {"releasing"},
}


@pytest.mark.parametrize("folder", ABOVE)
def test_what_measures_and_shows_knows_nothing_of_who_asks(folder):
    """Imports inside functions and for types alone count too."""
    named = set()
    for path in (SOURCE / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                named |= {f"{node.module}.{alias.name}" for alias in node.names}
            elif isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
    folders = {name.split(".")[1] for name in named if name.startswith("doublure.")}
    assert folder in folders
    assert not folders & ABOVE[folder]


def test_attacks_rest_on_figures_and_not_on_evaluations():
    code = "import sys, doublure.attack; sys.exit('doublure.evaluate' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_line_starts_without_what_only_a_verb_needs():
    later = "{'pydantic', 'numpy', 'pandas', 'torch'}"
    code = f"import sys, doublure.cli.main; sys.exit(' '.join({later} & {{*sys.modules}}) or 0)"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
