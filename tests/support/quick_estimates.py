"""What tests estimate from fewer draws than users do: no noise, no price and no rule hangs on their number.

A fit of `statistics` draws rows to rake shares and to fit the target, and series to learn which ones look real; tests
of what that costs, and of what follows from their number, let it draw all of them. Classifiers of tables are forests
and boosted trees: rows of a few columns need no hundred.

Where only what is counted matters, posteriors take one step of each descent: what is asked next follows from noisy
answers, however closely they were read.
"""

from __future__ import annotations

import math
from pathlib import Path

import tiers

from doublure.measures.relational import relations
from doublure.measures.tables import count_queries, utility
from doublure.methods.statistics.series import copula_plan
from doublure.methods.statistics.tables import posterior, work

WHOLE = (
    "golden",
    "methods/test_series_statistics.py",
    "methods/test_statistics.py",
    "methods/test_table_guided.py",
    "planning/test_forecast.py",
    "studio/test_project.py",
)
"""Folders and files of tests whose fits draw all of them; so do those of every process that a test starts."""
COUNTED = (
    "cli",
    "databases",
    "encode/test_above_root.py",
    "end_to_end/test_commands.py",
    "end_to_end/test_comparison.py",
    "end_to_end/test_forms_come_back.py",
    "end_to_end/test_ranks.py",
    "end_to_end/test_same_script.py",
    "end_to_end/test_tables.py",
    "end_to_end/test_what_was_bought_is_kept.py",
    "federated",
    "pitfalls",
    "studio",
    "test_audit_release.py",
    "test_catalogues.py",
    "test_dossier.py",
    "test_fitting.py",
    "test_forgeries.py",
    "test_killed_stages.py",
    "test_larger_than_memory.py",
    "test_lots_from_disk.py",
    "test_made_columns.py",
    "test_on_workers.py",
    "test_one_call.py",
    "test_related_rules.py",
    "test_released_forms.py",
    "test_releasing.py",
    "test_row_links.py",
    "test_rules_across_rows.py",
    "test_verified_rules.py",
    "test_what_ran.py",
)
"""Folders and files of tests of what is counted, charged, kept and shown, and of none how near a draw comes to it."""
FEW, MANY = 500, work.DRAWN
_FEW_SERIES, MANY_SERIES = 200, copula_plan.LOOKED_AT
_STILL, _FLAT = posterior._STILL, posterior._FLAT
_TREES = 25
_QUERIES = 100


def install() -> None:
    """Let forests have fewer trees, and boosting fewer rounds, and fewer counts be asked for."""
    utility._TREES = _TREES
    count_queries.QUERIES, relations.QUERIES = _QUERIES, _QUERIES // 2


def choose(test: Path) -> None:
    """Say how many rows and series the next fits draw, and whether a posterior's descents end after a step."""
    whole = tiers.ALL or tiers.is_among(test, WHOLE)
    work.DRAWN, copula_plan.LOOKED_AT = (MANY, MANY_SERIES) if whole else (FEW, _FEW_SERIES)
    once = not tiers.ALL and tiers.is_among(test, COUNTED)
    posterior._STILL, posterior._FLAT = (math.inf, math.inf) if once else (_STILL, _FLAT)
