"""Players and their salaries: how rows hang on their player and on the row before, over all pairs, a row a fit.

All players are fitted, with the 146 teams and seven leagues of all clubs there were; the clubs that paid no salary on
record have names made up here, for no cell has one. A pair's TVD is over eight cells a column: quantiles of real
numbers, or the seven commonest values and all others; missing is a value. The floor is real salaries, dealt out among
the players who have any. Put People.csv and Salaries.csv into ``out/league`` (``related_data.py`` says which).

    python benchmarks/related_league.py [--epsilons 1 3 10] [--seeds 0]
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from command_line import command_line
from doublure.data.relational import open_related
from doublure.schema import Schema
from doublure.schema.relational import RelationalSchema
from related_data import LEAGUE, RELATED
from relational import DELTA, _fit
from results import by_cell, measure

TEAMS, CELLS = 146, 8
UNTOLD = [f"X{number:02d}" for number in range(TEAMS - 35)]
TEXT = (
    LEAGUE.replace("units: 16000", "units: 20262")
    .replace("TEX, TOR, WAS]", f"TEX, TOR, WAS, {', '.join(UNTOLD)}]")
    .replace("values: [AL, NL]", "values: [AL, NL, AA, FL, NA, PL, UA]")
)
Codes = npt.NDArray[np.int64]


class Cells:
    """Eight cells of each column, by real rows."""

    def __init__(self, real: Mapping[str, pd.DataFrame], schema: RelationalSchema) -> None:
        self._of: dict[tuple[str, str], Any] = {}
        for name, table in schema.tables.items():
            for own, column in table.columns.items():
                if not column.modelled:
                    continue
                cells = real[name][own]
                if column.listed:
                    common = cells.value_counts(dropna=False).index[: CELLS - 1]
                    self._of[name, own] = {value: at for at, value in enumerate(common)}
                else:
                    numbers = _numbers(cells)
                    self._of[name, own] = np.unique(np.nanquantile(numbers, np.arange(1, CELLS) / CELLS))

    def codes(self, name: str, own: str, cells: pd.Series[Any]) -> Codes:
        """Return the cell ``(N,)`` of each row."""
        known = self._of[name, own]
        if isinstance(known, dict):
            return cells.map(known).fillna(CELLS - 1).to_numpy().astype(np.int64)
        numbers = _numbers(cells)
        return np.where(np.isnan(numbers), CELLS, np.searchsorted(known, numbers, side="right")).astype(np.int64)

    def columns(self, name: str) -> list[str]:
        """Return the columns of a table."""
        return [own for table, own in self._of if table == name]


def _numbers(cells: pd.Series[Any]) -> npt.NDArray[np.float64]:
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return np.where(cells.isna(), np.nan, cells.astype("int64").to_numpy() / 1e9)
    return pd.to_numeric(cells).to_numpy(dtype=np.float64, na_value=np.nan)


def shares(*codes: Codes) -> npt.NDArray[np.float64]:
    """Return the share of each cell of a joint table."""
    place = np.zeros(len(codes[0]), dtype=np.int64)
    for each in codes:
        place = place * (CELLS + 1) + each
    return np.bincount(place, minlength=(CELLS + 1) ** len(codes)) / max(1, len(place))


def tables_of(rows: Any, cells: Cells, schema: RelationalSchema) -> dict[str, list[npt.NDArray[np.float64]]]:
    """Return the joint tables of players with salaries, of salaries alone, and of one salary and the next."""
    (child,), root = schema.children, schema.root
    owner = rows.parents[child]
    above = {own: cells.codes(root, own, rows.frames[root][own])[owner] for own in cells.columns(root)}
    own = {each: cells.codes(child, each, rows.frames[child][each]) for each in cells.columns(child)}
    follows = np.flatnonzero(owner[1:] == owner[:-1]) + 1
    return {
        "parent_child": [shares(one, other) for one in above.values() for other in own.values()],
        "one_way": [shares(each) for each in own.values()],
        "successive": [shares(each[follows - 1], each[follows]) for each in own.values()],
    }


def same_team(rows: Any) -> float:
    """Return how often a salary is of the team of the one before."""
    owner, team = rows.parents["Salaries"], rows.frames["Salaries"]["teamID"].astype(str).to_numpy()
    follows = owner[1:] == owner[:-1]
    return float((team[1:] == team[:-1])[follows].mean())


def dealt_anew(rows: Any, rng: np.random.Generator) -> Any:
    """Return the same rows, of which each salary belongs to the player of another."""
    salaries = rows.frames["Salaries"].iloc[rng.permutation(len(rows.frames["Salaries"]))].reset_index(drop=True)
    return replace(rows, frames={**rows.frames, "Salaries": salaries})


def one(epsilon: float, seed: int) -> dict[str, Any]:
    """Return one fit's figures, the floor's and the real ones."""
    schema = Schema.parse(TEXT)
    related = RelationalSchema.of(schema)
    tables = RELATED["league"].tables()
    begun = time.process_time()
    syn = _fit(schema, tables, epsilon, seed)
    fitted = time.process_time()
    made = syn.sample(len(tables["People"]), seed=seed)
    drawn_at = time.process_time()
    real, drawn = (open_related(each).load(schema.resolve({})).content for each in (tables, made))
    floor = dealt_anew(real, np.random.default_rng(seed))
    cells = Cells(real.frames, related)
    wanted = tables_of(real, cells, related)
    row: dict[str, Any] = {"same_team": [same_team(drawn), same_team(floor), same_team(real)]}
    for place, rows in enumerate((drawn, floor)):
        for key, found in tables_of(rows, cells, related).items():
            far = [abs(a - b).sum() / 2 for a, b in zip(found, wanted[key], strict=True)]
            row.setdefault(key, [0.0, 0.0])[place] = round(float(np.mean(far)), 4)
    seconds = {"fit_cpu": round(fitted - begun, 1), "sample_cpu": round(drawn_at - fitted, 1)}
    return row | seconds | {"delta": DELTA, "salaries": len(made["Salaries"])}


def main() -> None:
    """Read the command line, and measure what is not kept yet."""
    asked = command_line(__doc__, epsilons=[1.0, 3.0, 10.0], seeds=[0])
    cells = [(epsilon, seed) for epsilon in asked.epsilons for seed in asked.seeds]
    measure("related_league", by_cell(cells, one))


if __name__ == "__main__":
    main()
