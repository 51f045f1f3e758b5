"""The scripts install once, whichever of them runs first, and a second demo finds a folder of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = '#!/bin/sh\necho "$@" >> calls.txt\n'


@pytest.fixture
def checkout(tmp_path):
    """Return a checkout whose environment only writes down what it is asked to do."""
    if not (ROOT / "scripts").is_dir() or os.name != "posix":
        pytest.skip("needs the scripts and a shell")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("pyproject.toml", "constraints.txt", "constraints-dev.txt", "constraints-federated.txt"):
        shutil.copy(ROOT / name, tmp_path)
    for venv in (".venv", ".venv-federated", ".venv-dask"):
        (tmp_path / venv / "bin").mkdir(parents=True)
        python = tmp_path / venv / "bin" / "python"
        python.write_text(PYTHON)
        python.chmod(0o755)
    return tmp_path


def run(checkout, script, *words):
    """Run a script and return what its python was asked to do."""
    environment = {**os.environ, "PYTHON": sys.executable}
    command = ["sh", str(checkout / "scripts" / script), *words]
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=checkout.parent)
    calls = checkout / "calls.txt"
    lines = calls.read_text().splitlines() if calls.exists() else []
    calls.unlink(missing_ok=True)
    return lines


def installs(lines):
    return [line.split()[-1] for line in lines if "pip install" in line]


def test_what_is_installed_is_not_installed_again(checkout):
    assert installs(run(checkout, "demo")) == ["."]
    assert installs(run(checkout, "demo")) == []
    assert installs(run(checkout, "docs")) == [".[docs]"]
    assert installs(run(checkout, "test")) == [".[docs,dev]"]
    for script in ("demo", "test", "docs", "demo", "venv"):
        assert installs(run(checkout, script)) == []
    for name in ("constraints.txt", "constraints-dev.txt"):
        with (checkout / name).open("a") as file:
            file.write("# changed\n")
        assert installs(run(checkout, "demo")) == [".[docs,dev]"]  # what was there is kept
        assert installs(run(checkout, "test")) == []


def test_both_files_of_pins_are_used(checkout):
    (line,) = (line for line in run(checkout, "venv") if "pip install" in line)
    assert "-c constraints.txt -c constraints-dev.txt" in line


@pytest.mark.parametrize("product", ["constraints.txt", "constraints-federated.txt"])
def test_no_pins_that_are_installed_together_differ(product):
    """Two pins of one library cannot be installed."""
    pinned = {}
    for name in (product, "constraints-dev.txt"):
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            library, _, version = line.partition("==")
            if version:
                pinned.setdefault(library.lower().replace("_", "-"), set()).add(version)
    assert len(pinned) > 50
    assert {library: versions for library, versions in pinned.items() if len(versions) > 1} == {}


def test_the_documentation_is_built_strictly(checkout):
    made, built = run(checkout, "docs")[-2:]
    assert made == "scripts/make_reference.py build/docs"
    assert built == "-m zensical build --strict"


def test_a_second_demo_finds_a_folder_of_its_own(checkout):
    assert run(checkout, "demo")[-1] == "-m doublure demo -o doublure-demo"
    (checkout / "doublure-demo").mkdir()
    assert run(checkout, "demo", "--json")[-1] == "-m doublure demo -o doublure-demo-2 --json"
    (checkout / "doublure-demo-2").mkdir()
    assert run(checkout, "demo")[-1] == "-m doublure demo -o doublure-demo-3"
    for words in (["-o", "mine"], ["-omine"], ["--out=mine"], ["--help"]):
        assert run(checkout, "demo", *words)[-1] == " ".join(["-m doublure demo", *words])


def test_scripts_are_linted_too(checkout):
    asked = [line for line in run(checkout, "test") if "ruff" in line]
    assert len(asked) == 2
    assert all("scripts" in line.split() for line in asked)


def test_a_quick_test_asks_for_lint_and_tests_alone(checkout):
    asked = run(checkout, "test", "--quick", "-k", "name")
    assert [line.split()[1] for line in asked if line.startswith("-m")] == ["pip", "ruff", "ruff", "pytest"]
    assert asked[-1].endswith("--dist loadfile --no-loadscope-reorder -k name")
    asked = run(checkout, "test", "--all")
    words = [line.split()[1] for line in asked if line.startswith("-m")]
    assert [word for word in words if word != "mypy"] == ["ruff", "ruff", "pip", "pytest", "pip", "pytest", "pytest"]
    assert words.count("mypy") == 1  # beside the others
    assert installs(asked) == [".[dev,federated]", ".[dev,dask]"]
    assert "-m pytest tests/federated" in asked
    assert "-m pytest tests/on_dask" in asked


@pytest.mark.parametrize("check", ["ruff format", "ruff check", "mypy", "importlinter", "pytest"])
def test_a_check_that_fails_fails_all(checkout, check):
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(f'{PYTHON}case "$*" in *"{check}"*) exit 3 ;; esac\n')
    with pytest.raises(subprocess.CalledProcessError):
        run(checkout, "test")
