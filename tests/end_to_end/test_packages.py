"""Wheel and sdist: built, installed into fresh environments, and run there; what they hold, and what they say."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from tiers import exhaustive

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build a wheel or an sdist, without a network."""
    pytest.importorskip("hatchling", reason="needs hatchling, which the extra dev has")
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, text=True)
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    if not (ROOT / "scripts").is_dir():
        pytest.skip("needs a checkout")
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (inside,) = folder.iterdir()
    return inside


@pytest.fixture(scope="module")
def wheel(unpacked, tmp_path_factory):
    """Return a wheel that was built from the sdist alone."""
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


@exhaustive
def test_the_sdist_holds_what_it_names(unpacked):
    named = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    for name in named:
        assert (unpacked / name.strip("/")).exists(), name
    for page in [unpacked / "README.md", unpacked / "CONTRIBUTING.md", unpacked / "SECURITY.md"]:
        for link in re.findall(r"\]\(([^):#]+)[^):]*\)", page.read_text(encoding="utf-8")):
            assert (unpacked / link).exists(), (page.name, link)
    assert not [path for path in unpacked.rglob("*") if path.name in {"__pycache__", ".venv", "out", "shared"}]


@exhaustive
def test_two_builds_are_equal_to_the_last_byte(unpacked, wheel, tmp_path):
    assert build("wheel", unpacked, tmp_path / "again").read_bytes() == wheel.read_bytes()


@exhaustive
def test_the_wheel_holds_the_package_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"doublure"}
    assert {"doublure/py.typed", "doublure/datasets/bundled/adult_train.csv.xz"} <= set(names)
    written = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    assert written <= set(names)


@exhaustive
def test_the_long_description_can_be_read_elsewhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("METADATA"))
        told = email.message_from_bytes(archive.read(name))
    text = str(told.get_payload())
    assert text.startswith("# doublure")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert all(link.startswith(("https://", "#")) for link in links), links
    known = pytest.importorskip("trove_classifiers").classifiers
    assert set(told.get_all("Classifier")) <= known
    assert told["Description-Content-Type"] == "text/markdown"


@exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_runs_where_it_is_installed(kind, request, tmp_path):
    """The libraries are those of this environment; the package is the built one."""
    made = request.getfixturevalue(kind)
    home = tmp_path / "fresh"
    venv.create(home, with_pip=True, symlinks=True)
    binaries = home / "bin"
    (own,) = (home / "lib").glob("python*/site-packages")
    shared = [path for path in sys.path if path.endswith("site-packages")]
    (own / "shared.pth").write_text("\n".join(shared) + "\n", encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(binaries / words[0]), *words[1:]], cwd=tmp_path, env=clean, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    options = ["--no-index", "--no-deps", "--no-build-isolation", "--force-reinstall"]
    run("python", "-m", "pip", "install", "--quiet", *options, str(made))
    where = Path(run("python", "-c", "import doublure; print(doublure.__file__)").strip())
    assert where.is_relative_to(home)
    assert run("doublure", "--version").strip() in made.name
    run("doublure", "demo", "-o", "demo")
    run("doublure", "verify", "demo/bundle", "--ledger", "demo/adult.ledger")
    if kind == "wheel":
        as_printed(binaries, clean, tmp_path)


def as_printed(binaries: Path, clean: dict[str, str], folder: Path) -> None:
    """Type what README and tutorial print, each in an empty folder, with nothing but what was installed."""
    told = clean | {"PATH": os.pathsep.join([str(binaries), clean["PATH"]])}
    for page, left in (("README.md", "census-bundle"), ("docs/tutorial.md", "bundle")):
        blocks = re.findall(r"^```(python|sh)\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
        assert blocks, page
        for language in sorted({language for language, _ in blocks}):
            empty = folder / f"{Path(page).stem}-{language}"
            empty.mkdir()
            typed = "\n".join(code for each, code in blocks if each == language)
            command = [str(binaries / "python"), "-c"] if language == "python" else ["sh", "-ec"]
            done = subprocess.run([*command, typed], cwd=empty, env=told, capture_output=True, text=True)
            assert done.returncode == 0, (page, language, done.stderr)
            assert (empty / ("bundle" if language == "python" else left) / "card.json").is_file()
