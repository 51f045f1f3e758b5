"""What a release of the package itself rests on: one version everywhere, conda's requirements, the workflow's order."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from doublure import __version__

ROOT = Path(__file__).resolve().parents[1]
RECIPE, WORKFLOW = ROOT / "deploy" / "conda" / "recipe.yaml", ROOT / ".github" / "workflows" / "release.yml"
BY_CONDA = {"matplotlib": "matplotlib-base"}
pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="deploy/ is not here")


def test_every_file_names_one_version():
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == cited["version"] == __version__
    assert re.search(
        rf"^## {re.escape(__version__)} \(", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_conda_asks_for_what_pip_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    split = [re.fullmatch(r"([a-z0-9-]+?)([<>=].*)", each).groups() for each in project["dependencies"]]
    wanted = [
        f"python {project['requires-python']}",
        *(f"{BY_CONDA.get(name, name)} {limits}" for name, limits in split),
    ]
    recipe = yaml.safe_load(RECIPE.read_text(encoding="utf-8"))
    assert recipe["requirements"]["run"] == wanted
    assert [f"{name} = {where}" for name, where in project["scripts"].items()] == recipe["build"]["python"][
        "entry_points"
    ]


def test_nothing_is_published_before_it_was_tried():
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    assert jobs["try"]["needs"] == "build"
    assert jobs["publish"]["needs"] == "try"
    assert jobs["publish"]["environment"] == "release"
    assert [name for name, job in jobs.items() if "write" in str(job.get("permissions"))] == ["publish"]
    tried = set(jobs["try"]["strategy"]["matrix"]["python"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert tried == {each.rsplit(" ", 1)[1] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)}
