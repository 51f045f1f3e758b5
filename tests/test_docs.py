"""The examples of the pages in docs/ run, as do blocks marked sh; every command that a page shows exists."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import typer
from killed import ended, started
from shell import type_in
from tiers import exhaustive

import doublure as db
from doublure.attack import registry as table
from doublure.cli.main import VERBS, app
from doublure.errors import GateFailed
from doublure.releasing.bundle import verify
from doublure.schema import Schema
from doublure.schema.series import Windows
from doublure.support import yaml12 as yaml_text

DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page's example prints and leaves behind, and how many commands the page shows."""

    name: str
    printed: tuple[str, ...]
    left: Callable[[], bool]
    commands: int

    @property
    def text(self) -> str:
        return (DOCS / self.name).read_text(encoding="utf-8")

    def blocks(self, language: str) -> list[str]:
        return re.findall(rf"```{language}\n(.*?)```", self.text, flags=re.DOTALL)


def bundle(ledger: str, files: int) -> Callable[[], bool]:
    """Return a check: there is a bundle of so many files, and the ledger vouches for it."""
    return lambda: verify("bundle", ledger=ledger)["files"] == files


ATTACKS = Page(
    name="attacks.md",
    printed=("5 attacks were made and none contradicts the claim", "the attacker held: the released records"),
    left=lambda: Path("audit.html").is_file() and Path("audit.json").is_file(),
    commands=7,
)
IMAGES = Page(
    name="images.md", printed=("(100, 8, 8, 1) uint8 100",), left=bundle("digits.ledger", files=6), commands=11
)
EVOLUTION = Page(
    name="evolution.md", printed=("Votes: ", "candidates"), left=bundle("even.ledger", files=6), commands=1
)
LATENT = Page(
    name="latent.md",
    printed=("(100, 8, 8, 1) Public generator, autoencoder, SHA-2", "Public source: "),
    left=bundle("even.ledger", files=6),
    commands=6,
)
SERIES = Page(
    name="series.md", printed=("(100, 4, 1) ('litres',) True",), left=bundle("water.ledger", files=8), commands=7
)
SCHEMA = Page(
    name="evidence/schema.md",
    printed=("1000 True 1\n", "True 0.3\n30 40 True\n500\n"),
    left=lambda: Path("asked/executed.json").is_file() and Path("visits/executed.json").is_file(),
    commands=1,
)
PROMISE = Page(name="evidence/promise.md", printed=("1.83 1.42\n",), left=lambda: True, commands=0)
REPORTED = Page(
    name="evidence/reports.md",
    printed=("1000 01067\n", "MAIN 0\n", "given flies: has no such value; use one of: never, often\n"),
    left=lambda: Path("travel/executed.json").is_file(),
    commands=0,
)
REPORTS = {
    "SDV": "51 67 174 207 265 361 432 466 472 563 613 689 691 696 829 1433 1477 1519 1558 1570 1576 1596 1617 1622 "
    "1673 1688 1723 1737 1752 1760 1922 1945 2063 2112 2115 2136 2189 2229 2261 2275 2288 2318 2361 2368 2473 2493 "
    "2536 2589 2594 2637 2778 2913",
    "SmartNoise": "480 485 591 594 606",
    "synthpop": "32",
    "CTGAN": "52 95 229",
}
"""Reports of other tools' users that were tried with doublure."""
RELATIONAL = Page(
    name="relational.md", printed=("True 500", "admitted", "ward"), left=bundle("hospital.ledger", files=9), commands=10
)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
RUN = {"attacks", "evolution", "extending", "images", "latent", "promise", "relational", "reports", "schema", "series"}
"""Pages whose examples run below, each in a way of its own."""
ELSEWHERE = {
    "federated": "federated/test_page.py", "inference": "test_syntheses.py", "own-table": "end_to_end/test_cases.py",
    "sources": "databases/test_page.py", "statistics": "methods/test_equations.py",
}  # fmt: skip
"""Pages whose examples another file of tests runs."""
TYPED = {"choosing-epsilon", "index", "install"}
"""Pages whose commands are typed in a folder with the census table and its schema."""
PAGES = pytest.mark.parametrize(
    "page", [ATTACKS, EVOLUTION, IMAGES, LATENT, RELATIONAL, SERIES], ids=lambda page: page.name
)


EXTENDING = [
    code
    for page in ("extending.md", "evidence/extending.md")
    for code in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL)
]


def lines_of(code, folder):
    """Run an example in a child, since what is registered stays; return the lines that it prints."""

    def example():
        os.chdir(folder)
        with (folder / "printed").open("w", encoding="utf-8") as printed, contextlib.redirect_stdout(printed):
            exec(compile(code, "docs", "exec"), vars(sys.modules.setdefault("example", ModuleType("example"))))

    assert ended(started(example)) == 0
    return (folder / "printed").read_text(encoding="utf-8").splitlines()


def test_a_type_of_a_new_nature_works(tmp_path):
    """From a draft to a bundle, with rules, conditions and an evaluation."""
    drafted, ready, asked, evaluated, released = lines_of(EXTENDING[1], tmp_path)
    assert drafted == "['pace', 'pace', 'category']"
    assert ready == "True"
    assert asked == "True True True"
    assert evaluated == "One-way TVD"
    assert released == "7 True"
    assert re.search(r"[34]:\d\d/km", (tmp_path / "runners.html").read_text(encoding="utf-8"))  # on an axis
    with pytest.raises(GateFailed, match="names the type pace, which is not registered where it is verified"):
        verify(tmp_path / "bundle")
    assert "3:00/km to 7:00/km" in (tmp_path / "bundle" / "card.html").read_text(encoding="utf-8")


def test_a_method_for_images_works(tmp_path):
    assert lines_of(EXTENDING[2], tmp_path) == ["True"]
    method = EXTENDING[2].partition("class Averages")[2].partition("registry.register")[0]
    assert len([line for line in method.splitlines() if line.strip()]) <= 25


def test_what_is_added_from_outside_works(tmp_path):
    claim, typed, sampled, attacked, measured = lines_of(EXTENDING[0], tmp_path)
    assert claim.startswith("(ε=1, δ=1e-06)-differentially private for one person")
    assert typed == "True"
    assert sampled == "0.2 1"
    assert attacked == "Most common value"
    assert measured == "Values that are gone"
    assert "Values that are gone" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (tmp_path / "run" / "executed.json").is_file()


def test_a_query_of_ones_own_works(tmp_path):
    """Its sensitivity, its partitions and its mutant: tests/private/queries/test_own_query.py."""
    assert lines_of(EXTENDING[3], tmp_path)[0] in ("apple", "apple fig", "apple fig pear")  # noise may count one less
    assert "count common values" in (tmp_path / "fruit" / "executed.json").read_text(encoding="utf-8")


@exhaustive
def test_what_is_added_from_outside_is_typed(tmp_path):
    """As strictly as this package. Types of columns are told by a Literal, which their class has as another one."""
    examples = [tmp_path / f"example_{place}.py" for place, _ in enumerate(EXTENDING)]
    for example, code in zip(examples, EXTENDING, strict=True):
        example.write_text(code, encoding="utf-8")
    checked = [sys.executable, "-m", "mypy", "--no-error-summary", *examples]
    said = subprocess.run(checked, cwd=DOCS.parent, capture_output=True, text=True)
    assert not said.stderr
    assert [line for line in said.stdout.splitlines() if 'defined the type as "Literal' not in line] == []


@pytest.mark.parametrize(
    "page",
    [
        ATTACKS,
        EVOLUTION,
        PROMISE,
        REPORTED,
        RELATIONAL,
        SCHEMA,
        SERIES,
        *(pytest.param(page, marks=exhaustive) for page in (IMAGES, LATENT)),
    ],
    ids=lambda page: page.name,
)
def test_the_example_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    codes = page.blocks("python")
    assert codes
    for code in codes:
        exec(compile(code, f"docs/{page.name}", "exec"), {})
    printed = capsys.readouterr().out
    assert all(line in printed for line in page.printed)
    assert page.left()
    for commands in page.blocks("sh"):
        type_in(commands)


@pytest.mark.parametrize("tool", REPORTS)
def test_every_report_that_was_tried_has_its_line(tool):
    told = re.findall(r"^\| [^|]*\(([^|]*)\) \|", REPORTED.text, flags=re.MULTILINE)
    listed = [found[1] for line in told for found in re.finditer(rf"{tool} (\d+(?:, \d+)*)", line)]
    assert sorted(int(number) for numbers in listed for number in numbers.split(", ")) == sorted(
        map(int, REPORTS[tool].split())
    )


@PAGES
def test_the_commands_shown_exist(page):
    shown = re.findall(r"^doublure (\w+)", page.text, flags=re.MULTILINE)
    assert set(shown) <= set(VERBS)
    assert len(shown) == page.commands


@PAGES
def test_nothing_is_promised_that_is_not(page):
    assert not re.search(r"anonym|\bsafe(?!tensors)", page.text, flags=re.IGNORECASE)


def test_every_attack_and_group_is_named():
    _, who = ATTACKS.text.split("\n## Who attacks\n")
    told = re.findall(r"^\| `([a-z][\w-]+)` \|", who.partition("\n## ")[0], flags=re.MULTILINE)
    assert sorted(told) == sorted(table.ATTACKS)
    for group in table.GROUPS:
        assert f"`{group}`" in ATTACKS.text


def test_every_verb_of_a_public_generator_is_shown():
    public = typer.main.get_command(app).commands["public"].commands
    assert set(re.findall(r"doublure public (\w+)", LATENT.text)) == set(public)


def test_the_schema_shown_is_read_and_every_key_is_described():
    text, *_ = SERIES.blocks("yaml")
    assert Schema.parse(text).undeclared == ()
    for key in Windows.model_fields:
        assert f"`series.{key}`" in SERIES.text


@pytest.mark.parametrize(
    "name",
    ["choosing-epsilon", *(pytest.param(page, marks=exhaustive) for page in ("index", "install"))],
)
def test_the_commands_run_as_shown(name, tmp_path, monkeypatch):
    """Two pages show the demo, of which cli/test_demo.py has a smaller one."""
    monkeypatch.chdir(tmp_path)
    db.Schema.load(db.datasets.adult_schema_path()).save("adult.schema.yaml")
    page = Page(name=f"{name}.md", printed=(), left=lambda: True, commands=0)
    for text in page.blocks("yaml"):
        Path("wants.yaml").write_text(text, encoding="utf-8")
    blocks = page.blocks("sh")
    assert blocks
    for commands in blocks:
        type_in(commands)


def test_every_block_of_code_is_run_by_a_test():
    """Python, sh and bash (of machines) run; YAML is read; what has no language shows a command or what it prints."""
    for path in DOCS.rglob("*.md"):
        languages = {language for language, _ in BLOCK.findall(path.read_text(encoding="utf-8"))}
        assert languages <= {"", "python", "sh", "bash", "yaml", "text"}, path.name
        if languages & {"python", "sh"} and path.stem not in {"benchmarks", "tutorial"}:
            if path.stem in ELSEWHERE:
                test = Path(__file__).parent / ELSEWHERE[path.stem]
                assert path.name in test.read_text(encoding="utf-8")
                continue
            assert path.stem in RUN | TYPED, f"{path.name}: no test runs its code"


def shown():
    """Yield every command line of doublure that stands in a block, and the page."""
    for path in sorted(DOCS.rglob("*.md")):
        for _, body in BLOCK.findall(path.read_text(encoding="utf-8")):
            for line in body.replace("\\\n", " ").splitlines():
                if line.startswith("doublure "):
                    yield path.name, line


@pytest.mark.parametrize(("page", "line"), [pytest.param(*each, id=f"{each[0]}: {each[1][:60]}") for each in shown()])
def test_a_command_that_is_shown_can_be_typed(page, line):
    """Its verbs, flags and number of arguments are those of the command line."""
    parsed, left, command = understood(line)
    assert left == []
    for argument in (each for each in command.params if each.param_type_name == "argument" and each.required):
        assert parsed.get(argument.name), f"{argument.name} is missing"


def test_a_command_that_is_not_understood_is_noticed():
    with pytest.raises(Exception, match="--none"):
        understood("doublure plan a.yaml --none 1")
    assert understood("doublure plan a.yaml b.yaml")[1] == ["b.yaml"]


def understood(line):
    """Return a command's parsed words, those left over, and the command."""
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "…"]
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    parsed, left, _ = command.make_parser(command.context_class(command)).parse_args(words)
    return parsed, left, command


def test_a_benchmark_that_is_shown_is_one_that_there_is():
    (block,) = re.findall(
        r"```sh\n(.*?)```", (DOCS / "evidence" / "benchmarks.md").read_text(encoding="utf-8"), flags=re.DOTALL
    )
    for line in block.replace("\\\n", " ").splitlines():
        _, file, verb, *words = shlex.split(line, comments=True)
        program = (DOCS.parent / file).read_text(encoding="utf-8")
        assert f'"{verb}"' in program
        assert all(f'"{flag}"' in program for flag in words if flag.startswith("--") or flag == "-o"), line


@exhaustive
def test_the_tutorial_runs_as_it_is_printed(tmp_path, monkeypatch):
    """Its commands, in their order; and the edits that it shows make the schema that it goes on with."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    typed = [line for block in blocks for line in block.splitlines()]
    assert {line.split()[1] for line in typed} == {
        *("demo", "schema", "plan", "budget", "fit", "sample", "evaluate", "compare", "keys", "release", "verify")
    }
    for block in blocks:
        type_in(block)
    (edits,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    edited, draft = yaml_text.parse(edits, "edits"), Schema.load("draft.yaml").to_plain()
    whole = draft | edited | {"columns": draft["columns"] | edited["columns"]}
    found, wanted = Schema.from_plain(whole).to_plain(), Schema.load("adult.schema.yaml").to_plain()
    for plain in (found, wanted):  # the demo's schema says of two columns what no codebook does
        for name in ("capital-gain", "capital-loss"):
            plain["columns"][name].pop("zero_inflated", None)
        for column in plain["columns"].values():  # and leaves out what the codebook says that columns mean
            column.pop("description", None)
    assert found == wanted
    assert Path("which.html").is_file()
    assert Path("gen/generator.safetensors").is_file()
