"""Singling out: an attacker states that exactly one person matches a description (WP216, §2.2.2).

A description that fits exactly one synthetic record may fit exactly one real one. Descriptions combine the values of a
synthetic record in several columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublure.attack.attack_data import AttackData
from doublure.attack.linkage.risk import HitCounts, make_result
from doublure.attack.results import AttackResult, ThreatModel, skip_attack
from doublure.errors import counted
from doublure.measures.divergence import Rows
from doublure.measures.tables.coding import Coded, Coder
from doublure.support.arrays import Floats

THREAT_MODEL = ThreatModel(
    attack="singling-out",
    name="Singling out",
    family="linkage",
    holds=("the released records",),
    does="Makes descriptions that fit exactly one synthetic row, of three to six columns: a value, or at least or at "
    "most a number.",
    success="A description fits exactly one of the real rows.",
    shows="That rows are released which point at one record.",
    cannot="Whose that record is, and what an attacker with more knowledge could link.",
    reference="Giomi et al. 2023, §4.1 (multivariate); WP216",
)

_GUESSES = 1000
_TRIED = 5
_COLUMNS = (3, 6)


@dataclass(frozen=True)
class _Condition:
    """One condition of a description: equal to a code, or at least or at most a number."""

    column: str
    code: int
    bound: float | None = None
    above: bool = False

    def kept(self, table: Coded, rows: Rows) -> Rows:
        """Return those of some rows that meet the condition."""
        if self.bound is None:
            equal: Rows = rows[table.codes[rows, table.names.index(self.column)] == self.code]
            return equal
        numbers: Floats = table.numbers[self.column][rows]
        passing: Rows = rows[numbers >= self.bound if self.above else numbers <= self.bound]
        return passing


def attack(data: AttackData) -> AttackResult:
    """Attack by descriptions that match a single row."""
    if not data.schema.only_columns:
        return skip_attack(THREAT_MODEL, data.claim, "any image or series singles itself out")
    rng, coder = data.random(6), Coder(schema=data.schema)
    n = min(len(data.seen), len(data.unseen))
    released = coder.read(data.released, "the synthetic records")
    seen, other = (
        coder.read(side.content, "the real records").take(rng.permutation(len(side))[:n])
        for side in (data.seen, data.unseen)
    )
    if len(coder.names) < 2:
        return skip_attack(THREAT_MODEL, data.claim, "there are too few columns to describe a row by")
    # A description may be made from any released row, but is counted among as many rows as are attacked.
    told = released.take(rng.permutation(len(released))[:n])
    described = list(_descriptions(told, rng))
    if not described:
        return skip_attack(THREAT_MODEL, data.claim, "no description fits exactly one synthetic row")
    guessed = [_guess(coder, told, rng) for _ in described]
    hits = HitCounts(
        attack=sum(_singles(tests, seen) for tests in described),
        control=sum(_singles(tests, other) for tests in described),
        baseline=sum(_singles(tests, seen) for tests in guessed),
        trials=len(described),
    )
    note = f"{counted(len(described), 'description')}, counted among {counted(n, 'row')} of each."
    return make_result(THREAT_MODEL, data, hits, note)


def _descriptions(table: Coded, rng: np.random.Generator) -> Sequence[tuple[_Condition, ...]]:
    """Return descriptions that fit exactly one row of a table, each once."""
    middles = {name: float(np.nanmedian(numbers)) for name, numbers in table.numbers.items() if _known(numbers)}
    found: dict[tuple[_Condition, ...], None] = {}
    for _ in range(_TRIED * _GUESSES):
        if len(found) == _GUESSES:
            break
        row = int(rng.integers(len(table)))
        tests = tuple(_test(table, row, name, middles) for name in _some(table.names, rng))
        if _singles(tests, table):
            found[tests] = None
    return list(found)


def _some(names: tuple[str, ...], rng: np.random.Generator) -> list[str]:
    width = int(rng.integers(min(_COLUMNS[0], len(names)), min(_COLUMNS[1], len(names)) + 1))
    return sorted(rng.choice(np.array(names, dtype=object), width, replace=False))


def _test(table: Coded, row: int, name: str, middles: dict[str, float]) -> _Condition:
    code = int(table.codes[row, table.names.index(name)])
    number = table.numbers[name][row] if name in table.numbers else np.nan
    if np.isnan(number) or name not in middles:
        return _Condition(name, code)
    return _Condition(name, -1, float(number), bool(number >= middles[name]))


def _guess(coder: Coder, table: Coded, rng: np.random.Generator) -> tuple[_Condition, ...]:
    """Return the baseline's description, uniform over the values the schema allows."""
    tests = []
    for name in _some(table.names, rng):
        if name in table.numbers:
            lower, upper, _ = coder.bounds(name)
            tests.append(_Condition(name, -1, float(rng.uniform(lower, upper)), bool(rng.random() < 0.5)))
        else:
            tests.append(_Condition(name, int(rng.integers(coder.sizes[table.names.index(name)]))))
    return tuple(tests)


def _singles(tests: tuple[_Condition, ...], table: Coded) -> bool:
    left: Rows = np.arange(len(table), dtype=np.int64)
    for test in tests:
        left = test.kept(table, left)
        if not len(left):
            return False
    return len(left) == 1


def _known(numbers: np.ndarray[Any, Any]) -> bool:
    return bool((~np.isnan(numbers)).any())
