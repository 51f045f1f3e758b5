"""Three tiers of the suite: ``scripts/test --quick`` for every edit, ``scripts/test`` for every commit, and ``--all``.

The exhaustive tier has longer versions of what is tested anyway: each product of settings, more examples and more draws
of noise, slower students. No rule of docs/evidence/pitfalls.md rests on it
alone, and no search in tests of the private core is cut short.

The quick tier leaves out two things: of a test that runs with several parameters every case but the first, and files
that were seen to take two seconds or more, with the files and folders of ``LONG``.

Files begin in the order of the seconds that they were last seen to take, the longest first: a long file that begins
last leaves the other processors idle. ``DOUBLURE_TEST_SECONDS=1 scripts/test`` keeps them anew.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

TESTS = Path(__file__).resolve().parents[1]
ALL = os.environ.get("DOUBLURE_TEST_ALL", "") not in ("", "0")
QUICK = os.environ.get("DOUBLURE_TEST_QUICK", "") not in ("", "0")
LONG = frozenset(
    {
        "attack", "auditing", "cli", "data/series/test_stamps.py", "data/test_csv_files.py",
        "data/test_object_stores.py", "encode/test_gaps.py", "encode/test_pairwise_swapping.py", "end_to_end",
        "evaluate", "federated", "golden", "ledger/test_chain.py", "methods/test_guided.py",
        "methods/test_noisecritic.py", "planning", "private/test_noise.py", "studio", "test_catalogues.py",
        "test_published.py", "test_signing.py", "test_site.py",
    }
)  # fmt: skip
"""What the quick tier leaves out besides files that were seen to take ``SHORT`` seconds: folders and files of tests."""
SHORT = 2
SECONDS = Path(__file__).with_name("seconds.json")
"""The files of tests that were seen to take a second or more, and how many."""

exhaustive = pytest.mark.exhaustive
_SHARE = 5
_Any = TypeVar("_Any")


def is_long(path: Path) -> bool:
    """Whether the quick tier leaves out a file or a folder of tests."""
    return is_among(path, LONG) or kept_seconds().get(path.relative_to(TESTS).as_posix(), 0) >= SHORT


@cache  # of a file, by several lists, before each of its tests
def is_among(path: Path, names: tuple[str, ...] | frozenset[str]) -> bool:
    """Whether a file of tests, or a folder that it is in, is one of those named."""
    inside = path.relative_to(TESTS)
    return any(part.as_posix() in names for part in (inside, *inside.parents))


def first_cases(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield tests, and of each that runs with several parameters the first case."""
    seen = set()
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name not in seen:
            yield item
        seen.add(name)


def longest_first(items: Iterable[pytest.Item], seconds: Mapping[str, float]) -> list[pytest.Item]:
    """Return tests by the seconds of their files, those of ``LONG`` before others that nobody has measured.

    A file's stay together, in their order; in which order files came does not matter.
    """

    @cache  # of a file, which may have hundreds of tests
    def place(name: str) -> tuple[float, str]:
        return -seconds.get(name, 3 if is_long(TESTS / name) else 0), name

    return sorted(items, key=lambda item: place(file_of(item.nodeid)))


def file_of(test: str) -> str:
    """Return the file of a test, from the folder of all tests on."""
    return test.partition("::")[0].removeprefix(f"{TESTS.name}/")


def kept_seconds() -> dict[str, float]:
    """Return the seconds of each file that was seen to take one or more."""
    found: dict[str, float] = json.loads(SECONDS.read_text(encoding="utf-8"))
    return found


def keep_seconds(reports: Iterable[pytest.TestReport]) -> None:
    """Write down how long the files took that these tests are of, beside what is known of others."""
    taken: Counter[str] = Counter()
    for report in reports:
        taken[file_of(report.nodeid)] += report.duration
    known = {name: seconds for name, seconds in (kept_seconds() | taken).items() if seconds >= 1}
    lines = sorted(known.items(), key=lambda entry: (-round(entry[1]), entry[0]))
    text = ",\n".join(f"  {json.dumps(name)}: {round(seconds)}" for name, seconds in lines if (TESTS / name).is_file())
    SECONDS.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def crossed(*given: Sequence[object]) -> list[Any]:
    """Return all cases of several parameters for pytest; those are exhaustive that no value needs to occur once.

    Args:
        given: The values of each parameter.
    """
    often = max(map(len, given))
    usual = {tuple(turn % len(each) for each in given) for turn in range(often)}
    cases = []
    for places in product(*(range(len(each)) for each in given)):
        values = [each[place] for each, place in zip(given, places, strict=True)]
        cases.append(pytest.param(*values, marks=[] if places in usual else exhaustive))
    return cases


def by_tier(usual: _Any, whole: _Any) -> _Any:
    """Return the first, or the second where everything runs."""
    return whole if ALL else usual


def examples(number: int, **more: object) -> settings:
    """Return settings of a search through so many examples where everything runs, and a fifth of them elsewhere."""
    return settings(max_examples=by_tier(max(10, number // _SHARE), number), deadline=None, **more)
