"""Short versions of ``benchmarks/robustness``: parsers are fuzzed, processes race, and mutants are caught or judged."""

from __future__ import annotations

import ast

import pytest
from programs import FOLDER, program

from doublure.errors import DataError

RUN = (
    "executed.json", "generator.safetensors", "guarantee.json", "internal/checkpoint.safetensors", "log.jsonl",
    "plan.json", "run.json", "schema.yaml",
)  # fmt: skip
PARSERS = (
    "csv", "csv.gz", "csv.zip", "parquet", "npz", "series", "series npz", "schema", "codebook",
    "redcap", "frictionless", "csvw", "sdv", "plan", "ledger", "provenance", "config",
    *(f"run: {name}" for name in RUN), "bundle: README.md", "bundle: card.html", "bundle: card.json",
    "bundle: croissant.json", "bundle: data.csv", "bundle: data.parquet",
    "bundle: datapackage.json", "bundle: dictionary.json", "images: Qv9Sentinel/1.png",
    "images: other/2.jpg", "idx: train-images-idx3-ubyte", "idx: train-labels-idx1-ubyte", "task: about.json",
    "task: labels.csv", "task: schema.yaml", "task: images/000001.png", "public: detail.safetensors",
    "public: encoder.safetensors",
    "public: generator.safetensors", "public: public.json",
)  # fmt: skip


@pytest.fixture(scope="module")
def fuzz():
    return program("fuzz")


@pytest.fixture(scope="module")
def parsers(fuzz, tmp_path_factory):
    return fuzz.parsers(tmp_path_factory.mktemp("world"))


def test_every_parser_is_here(parsers):
    assert tuple(parsers) == PARSERS


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_files_end_in_one_line(fuzz, parsers, name, tmp_path):
    found = fuzz.batch(parsers[name], tmp_path, number=1, examples=8)
    assert found.files == 8
    assert found.faults == []


@pytest.mark.parametrize("name", PARSERS)
def test_good_files_are_read(parsers, name, tmp_path):
    parsers[name].write(tmp_path, parsers[name].good)
    assert parsers[name].read(tmp_path) is not None


def test_a_parser_that_falls_or_tells_is_caught(fuzz, tmp_path):
    def falls(folder):
        raise ValueError("odd")

    def tells(folder):
        raise DataError(f"is {fuzz.SENTINEL}", field="name")

    for read, fault in ((falls, "ValueError: odd"), (tells, "DataError shows what is private")):
        found = fuzz.batch(fuzz.Parser("x", b"good", read), tmp_path, number=1, examples=3)
        assert set(found.faults) == {fault}


def test_processes_that_race_win_what_there_is_and_no_more():
    race = program("race")
    result = race.measure(4, 10)
    assert race.held(result), result
    assert result["spent"] == result["cap"]


def test_a_race_without_a_lock_is_caught():
    race = program("race")
    assert any(not race.held(race.measure(6, 20, mutant=True)) for _ in range(3))


# -- mutants -----------------------------------------------------------------------------------------------------------

TOY = '''
"""A toy."""

LEAST = 2


class Box:
    """Holds no more than its room."""

    def __init__(self, room, held=0):
        self.room = room
        self.held = held

    def add(self, number, *, twice=False):
        """Add to it."""
        if number < 0:
            raise ValueError(f"{number - 1} is below 0")
        self.held = min(self.held + number * (1 + twice), self.room)


def fits(number, room=10):
    return LEAST <= number and not number > room


def filled(number):
    box = Box(room=10, held=1)
    box.add(number, twice=True)
    while box.held < 10:
        box.add(1)
    return box
'''
SMALL = """
LEAST = 2


def fits(number, room=10):
    return LEAST <= number <= room


def filled(number, more=True):
    while more:
        number, more = max(number, 10), False
    return number
"""
SMALL_TESTS = """
from toy.box import filled, fits

def test_fits():
    assert fits(2) and not fits(1) and not fits(11)

def test_filled():
    assert filled(3) == 10
"""
ENDLESS = "box.py::filled::body[0].body[0].value.elts[1]::False to True"
TOO_LITTLE = "box.py::fits::body[0].value.ops[0]::<= to <"
UNSEEN = "box.py::fits::body[0].value.ops[1]::<= to <"


@pytest.fixture(scope="module")
def mutants():
    return program("mutants")


@pytest.fixture(scope="module")
def mutate():
    return program("mutate")


def found(mutants, source, needed=None):
    return {(each.function, each.operator, each.after) for each in mutants.mutants("box.py", source, needed or {})}


@pytest.mark.parametrize(
    ("line", "operator", "after"),
    [
        ("return a < b <= c", "< to <=", "return (a <= b <= c)"),
        ("return a < b <= c", "<= to <", "return (a < b < c)"),
        ("return a > b", "> to >=", "return (a >= b)"),
        ("return a == b", "== to !=", "return (a != b)"),
        ("return a + b", "+ to -", "return (a - b)"),
        ("return a * (b + c)", "* to /", "return (a / (b + c))"),
        ("a -= b", "- to +", "a += b"),
        ("return a and b", "and to or", "return (a or b)"),
        ("return not a", "not dropped", "return (a)"),
        ("return -a", "sign dropped", "return (a)"),
        ("return f(7)", "n to n + 1", "return f((8))"),
        ("return f(7)", "n to 0", "return f((0))"),
        ("return 0.25", "x to 2 x", "return (0.5)"),
        ("return True", "True to False", "return False"),
        ("return max(a, b)", "max to min", "return min(a, b)"),
        ("return np.minimum(a, b)", "minimum to maximum", "return np.maximum(a, b)"),
        ("f(a)", "statement dropped", "pass"),
        ("a.b = c", "statement dropped", "pass"),
        ("a[b] += c", "statement dropped", "pass"),
        ("raise ValueError(7)", "statement dropped", "pass"),
        ("return f(a, b=c, d=e)", "b= dropped", "return (f(a, d=e))"),
        ("return a if b else c", "condition to True", "return a if True else c"),
        ("return [a for a in b if c]", "condition to True", "return [a for a in b if True]"),
    ],
)
def test_each_edit_is_found(mutants, line, operator, after):
    assert ("f", operator, after) in found(mutants, f"def f(a, b, c):\n    {line}\n")


def test_a_guard_is_always_or_never_taken(mutants):
    source = "def f(a):\n    if a is None:\n        return 1\n    return a\n"
    taken = {after for _, operator, after in found(mutants, source) if operator.startswith("condition")}
    assert taken == {"if True:", "if False:"}


@pytest.mark.parametrize(
    "source",
    [
        "def f(a: Literal[3]) -> Literal[4]:\n    '''Return 7.'''\n",
        "def f(a):\n    return f'{a + 1}' + 'b'\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    x = 3\n    def f(): return 3\n",
        "class A:\n    def __repr__(self):\n        return str(3)\n",
        "def f(a):\n    return DataError(str(a + 1), field='x')\n",
        "def f(progress):\n    progress.stage(3)\n",
        "def f(a): ...\n",
        "@dataclass(frozen=True)\nclass A:\n    x: int\n",
        "def f(a, b):\n    return zip(a, b, strict=True)\n",
    ],
)
def test_what_is_said_is_never_edited(mutants, source):
    assert found(mutants, source) == set()


def test_an_argument_without_a_default_is_not_dropped(mutants):
    source = (
        "class A:\n    x: int\n    y: int = 0\n    @classmethod\n    def of(cls):\n        return cls(x=None, y=None)\n"
    )
    needed = mutants.required([ast.parse(source), ast.parse("def f(a, *, b, c=1): ...")])
    assert needed == {"A": {"x"}, "of": {"cls"}, "f": {"a", "b"}}
    assert {operator for _, operator, _ in found(mutants, source, needed)} >= {"y= dropped"}
    assert "x= dropped" not in {operator for _, operator, _ in found(mutants, source, needed)}


def test_a_refusal_goes_once(mutants):
    source = "def f(a):\n    if a:\n        raise ValueError\n"
    assert [each.operator for each in mutants.mutants("box.py", source, {})] == [
        "condition to True",
        "condition to False",
    ]


def test_every_mutant_compiles_and_differs(mutants):
    for each in mutants.mutants("box.py", TOY, {}):
        assert ast.dump(ast.parse(each.written(TOY))) != ast.dump(ast.parse(TOY)), each.id


def test_layout_comments_and_docstrings_change_no_name(mutants):
    before = mutants.mutants("box.py", TOY, {})
    other = TOY.replace('        """Add to it."""\n', "").replace(
        "(room=10, held=1)", "(\n        room=10,  # ε\n        held=1,\n    )"
    )
    after = mutants.mutants("box.py", f"# ε\n\n{other}", {})
    assert [(each.id, each.code) for each in before] == [(each.id, each.code) for each in after]
    assert len({each.id for each in before}) == len(before)


def test_a_function_that_changes_changes_its_own_mutants_alone(mutants):
    before = {each.id: each.code for each in mutants.mutants("box.py", TOY, {})}
    after = {each.id: each.code for each in mutants.mutants("box.py", TOY.replace("number > room", "number > 2"), {})}
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed
    assert {name.split("::")[1] for name in changed} == {"fits"}


@pytest.fixture
def toy(mutate, tmp_path):
    root = tmp_path / "toy"
    for path, text in (
        ("src/toy/__init__.py", ""), ("src/toy/box.py", SMALL), ("src/toy/other.py", "def one():\n    return 1\n"),
        ("tests/test_box.py", SMALL_TESTS),
        ("pyproject.toml", "[tool.pytest.ini_options]\nfilterwarnings = ['error']\n"),
    ):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return mutate.Project(
        root=root, package="src/toy", everything=("box.py",), sampled=("other",), sample=1,
        tests={"box": ("tests/test_*.py",), "other": ("tests/test_*.py",)}, imported=(), patience=(5.0, 0.0),
        out=root / "out", measured=root / "measured",
    )  # fmt: skip


def test_a_sample_is_drawn_the_same_each_time(mutate, toy):
    files = [each.file for each in toy.mutants()]
    assert files.count("other.py") == 1
    assert set(files) == {"box.py", "other.py"}
    assert [each.id for each in toy.mutants()] == [each.id for each in toy.mutants()]


@pytest.mark.exhaustive
def test_mutants_are_killed_survive_are_judged_and_run_once(mutate, toy):
    every = len([each for each in toy.mutants() if each.file == "box.py"])
    assert mutate.run(toy, ["box.py"], limit=3) == 3
    assert mutate.run(toy, ["box.py"]) == every - 3
    assert mutate.run(toy, ["box.py"]) == 0
    rows = {line["id"]: line for line in mutate._lines(toy.out / "mutants.jsonl")}
    assert {name: rows[name]["verdict"] for name in (ENDLESS, TOO_LITTLE, UNSEEN)} == {
        ENDLESS: "timeout", TOO_LITTLE: "killed", UNSEEN: "survived",
    }  # fmt: skip
    assert rows[TOO_LITTLE]["by"] == "tests/test_box.py::test_fits"
    assert rows[TOO_LITTLE]["after"] == "return (LEAST < number <= room)"
    assert [each.id for each in mutate.survivors(toy)] == [UNSEEN]
    (row,) = mutate.counted(toy, ["box.py"])
    assert (row["mutants"], row["killed"], row["by_time"], row["survived"]) == (every, every - 1, 1, 1)

    mutate.judge(toy, "for now", [UNSEEN])
    mutate.judge(toy, "nobody fills it to its room", [UNSEEN])
    assert [line["why"] for line in mutate._lines(mutate.Rows(toy).judgements)] == ["nobody fills it to its room"]
    with pytest.raises(SystemExit, match="did not survive"):
        mutate.judge(toy, "no", [TOO_LITTLE])
    (row,) = mutate.counted(toy, ["box.py"])
    assert (row["equivalent"], row["survived"]) == (1, 0)
    assert mutate.shares(row) == ((every - 1) / every, 1.0)
    mutate.record(toy)
    assert [line["file"] for line in mutate._lines(toy.measured / "mutants.jsonl")] == [
        "box.py"
    ]  # the other is not done


@pytest.mark.exhaustive
def test_tests_that_search_for_examples_run_after_all_others(mutate, toy):
    (toy.root / "tests/test_box.py").write_text(
        "from hypothesis import given, strategies as st\nfrom toy.box import fits\n"
        "@given(st.integers(2, 10))\ndef test_searched(n):\n    assert fits(n)\n"
        "def test_plain():\n    assert fits(10) and not fits(11)\n"
    )
    mutants = {each.id: each for each in toy.mutants()}
    with mutate.Copy(toy) as copy:
        assert copy.learn(["tests/test_box.py"]) == []
        assert copy.verdict(mutants[UNSEEN], ["tests/test_box.py"])["by"] == "tests/test_box.py::test_plain"
        assert copy.verdict(mutants[TOO_LITTLE], ["tests/test_box.py"])["by"] == "tests/test_box.py::test_searched"


def test_what_changed_runs_again(mutate, toy):
    project = toy
    chosen = {each.id: each for each in project.mutants()}
    for name, verdict in ((UNSEEN, "survived"), (TOO_LITTLE, "killed")):
        row = {
            "id": name,
            "code": chosen[name].code,
            "verdict": verdict,
            "tests": project.hash_of(["tests/test_box.py"]),
        }
        mutate.Rows(project).add(row)

    def state():
        rows, tests = mutate.Rows(project), project.hash_of(["tests/test_box.py"])
        now = {each.id: each for each in project.mutants()}
        return [rows.is_done(now[name], tests) for name in (UNSEEN, TOO_LITTLE)], rows.why(now[UNSEEN]) is not None

    assert state() == ([True, True], False)
    tests = project.root / "tests/test_box.py"
    tests.write_text(f"{SMALL_TESTS}\ndef test_full():\n    assert fits(10)\n")
    assert state() == ([False, True], False)  # a survivor meets tests that are new
    mutate.judge(project, "nobody fills it to its room", [UNSEEN])
    assert state() == ([True, True], True)
    source = project.root / "src/toy/box.py"
    source.write_text(SMALL.replace("max(number, 10)", "max(number, 11)"))
    assert state() == ([True, True], True)
    source.write_text(SMALL.replace("room=10", "room=9"))
    assert state() == ([False, False], False)
    with mutate.Rows(project).path.open("a") as file:
        file.write('{"id": "cut sh')
    source.write_text(SMALL)
    assert state() == ([True, True], True)


@pytest.mark.exhaustive
def test_a_server_that_is_ended_is_started_again(mutate, toy):
    with mutate.Copy(toy) as copy:
        for _ in range(2):
            copy._server.kill()
            copy._server.wait()
            assert copy.learn(["tests/test_box.py"]) == []


@pytest.mark.exhaustive
def test_nothing_is_mutated_while_tests_fail(mutate, toy):
    (toy.root / "tests/test_box.py").write_text("def test_no():\n    assert False\n")
    with pytest.raises(SystemExit, match=r"fails without a mutant:\n.*test_no"):
        mutate.run(toy, ["box.py"])
    assert not (toy.out / "mutants.jsonl").exists()


@pytest.mark.exhaustive
def test_tests_that_fail_are_left_out_where_it_is_asked_for(mutate, toy):
    (toy.root / "tests/test_other.py").write_text("def test_no():\n    assert False\n")
    assert mutate.run(toy, ["box.py"], limit=1, without_failing=True) == 1
    rows = mutate._lines(toy.out / "mutants.jsonl")
    assert {row["by"].partition("::")[0] for row in rows if row["verdict"] == "killed"} == {"tests/test_box.py"}
    (toy.root / "tests/test_box.py").unlink()
    assert mutate.run(toy, ["box.py"], without_failing=True) == 0  # nobody is left to judge


@pytest.mark.exhaustive
def test_a_file_that_is_not_imported_any_more_is_a_kill(mutate, toy):
    (toy.root / "src/toy/box.py").write_text(f"{SMALL}\nassert LEAST == 2\n")
    mutate.run(toy, ["box.py"], limit=1)
    (line,) = mutate._lines(toy.out / "mutants.jsonl")
    assert (line["id"], line["verdict"], line["by"]) == (
        "box.py::<module>::body[0].value::n to n + 1", "killed", "tests/test_box.py",
    )  # fmt: skip


def test_every_mutated_file_has_tests_and_every_pattern_a_file(mutate):
    project = mutate.Project(root=FOLDER.parents[1])
    assert set(mutate.METHODS) <= set(project.files)
    mutated = [file for file in project.files if file.startswith((*project.everything, *project.sampled))]
    for start in (*project.everything, *project.sampled):
        assert any(file.startswith(start) for file in mutated)
    for start in project.tests:  # whose patterns all fit a file, or this ends in SystemExit
        assert project.tests_of(next(file for file in mutated if file.startswith(start)))
    assert all(file.startswith(tuple(project.tests)) or project.tests_of(file) for file in mutated)


def test_judgements_name_what_there_is(mutate):
    project = mutate.Project(root=FOLDER.parents[1])
    lines = mutate._lines(mutate.Rows(project).judgements)
    assert all(set(line) == {"id", "before", "after", "code", "why", "date"} for line in lines)
    assert len({line["id"] for line in lines}) == len(lines)
