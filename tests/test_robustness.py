"""Short versions of ``benchmarks/robustness``: parsers are fuzzed, processes race, and mutants are caught."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from doublure.errors import DataError

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks" / "robustness"
RUN = (
    "generator.safetensors", "guarantee.json", "internal/checkpoint.safetensors", "log.jsonl", "plan.json", "run.json",
    "schema.yaml",
)  # fmt: skip
PARSERS = (
    "csv", "csv.gz", "csv.zip", "parquet", "npz", "series", "series npz", "schema", "codebook", "plan", "ledger",
    "provenance", "config", *(f"run: {name}" for name in RUN), "bundle: card.html", "bundle: card.json",
    "bundle: data.csv", "bundle: data.parquet", "bundle: dictionary.json", "images: Qv9Sentinel/1.png",
    "images: other/2.jpg", "idx: train-images-idx3-ubyte", "idx: train-labels-idx1-ubyte", "task: about.json",
    "task: labels.csv", "task: schema.yaml", "task: images/000001.png", "public: detail.safetensors",
    "public: encoder.safetensors",
    "public: generator.safetensors", "public: public.json",
)  # fmt: skip


def program(name):
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # as for a program that is run: its folder's other modules are found
    spec = importlib.util.spec_from_file_location(f"robustness_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


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
