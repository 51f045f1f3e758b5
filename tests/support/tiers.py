"""Three tiers of the suite: ``scripts/test --quick`` for every edit, ``scripts/test`` for every commit, and ``--all``.

The exhaustive tier has longer versions of what is tested anyway: each product of settings, more examples and more draws
of noise, slower students. No rule of docs/evidence/pitfalls.md rests on it
alone, and no search in tests of the private core is cut short.

The quick tier leaves out two things: of a test that runs with several parameters every case but the first, and the
files and folders of ``LONG``, whose first cases take more than three seconds of a processor together. How long a file's
tests take, ``DOUBLURE_TEST_QUICK=1 python -m pytest --durations=0 FILE`` says.

Files begin in the order of the seconds that they were last seen to take, the longest first: a long file that begins
last leaves the other processors idle. ``DOUBLURE_TEST_SECONDS=1 scripts/test`` keeps them anew.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
        "attack", "auditing", "cli", "data/series/test_stamps.py", "data/test_csv_files.py", "data/test_csv_records.py",
        "data/test_object_stores.py", "databases/test_counting.py", "databases/test_page.py",
        "databases/test_private.py", "databases/test_rules.py", "databases/test_streaming.py",
        "databases/test_units.py", "encode/test_computed_columns.py", "encode/test_gaps.py", "encode/test_new_rule.py",
        "encode/test_pairwise_swapping.py", "encode/test_points.py", "end_to_end", "evaluate", "federated", "golden",
        "ledger/test_chain.py", "ledger/test_faults.py", "ledger/test_processes.py", "ledger/test_server.py",
        "methods/test_bayesgan.py", "methods/test_chain_fitting.py", "methods/test_conditions.py",
        "methods/test_evolution.py", "methods/test_guided.py", "methods/test_identities.py",
        "methods/test_labelling.py", "methods/test_latentgan.py", "methods/test_mean_embedding.py",
        "methods/test_missing_blocks.py", "methods/test_noisecritic.py", "methods/test_posterior.py",
        "methods/test_public_rows.py", "methods/test_rare_classes.py", "methods/test_refining.py",
        "methods/test_related_levels.py", "methods/test_series_copula.py", "methods/test_series_lengths.py",
        "methods/test_series_looks.py", "methods/test_series_rules.py", "methods/test_series_statistics.py",
        "methods/test_statistics.py", "methods/test_statistics_related.py", "methods/test_wide_tables.py",
        "networks/test_scattering.py", "networks/test_tree_asked.py", "pitfalls/test_bayesian_dp.py",
        "pitfalls/test_partitions.py", "pitfalls/test_ranks.py", "pitfalls/test_related_levels.py",
        "pitfalls/test_relational.py", "pitfalls/test_row_links.py",
        "pitfalls/test_rule_01_nothing_data_dependent_is_free.py", "pitfalls/test_rule_02_one_object.py",
        "pitfalls/test_rule_02_what_runs_is_what_was_priced.py", "pitfalls/test_rule_03_lots_and_plans_are_public.py",
        "pitfalls/test_rule_06_every_step_is_an_event.py", "pitfalls/test_rule_08_noise_is_never_kept_or_repeated.py",
        "pitfalls/test_rule_10_files_hold_no_record.py", "pitfalls/test_rule_12_real_data_stays_inside.py",
        "pitfalls/test_rule_13_kinds_keep_their_words.py", "pitfalls/test_rule_14_inversion_is_record_by_record.py",
        "pitfalls/test_rule_17_the_domain_is_stated.py", "pitfalls/test_rule_19_what_one_record_causes.py",
        "pitfalls/test_series.py", "pitfalls/test_sums_of_images.py", "pitfalls/test_visits.py", "planning",
        "private/gradients/test_exactness.py", "private/gradients/test_sensitivity.py", "private/test_accounting.py",
        "private/test_exact_normals.py", "private/test_noise.py", "private/test_ranks.py", "private/test_sampling.py",
        "private/test_whole_noise.py", "public/test_public.py", "report/test_browser.py",
        "report/test_evaluation_page.py", "report/test_in_a_notebook.py", "schema/test_codebooks.py",
        "schema/test_registered_types.py", "studio", "test_annotating.py", "test_audit_fits.py",
        "test_audit_release.py", "test_catalogues.py", "test_datasets.py", "test_deploying.py", "test_docs.py",
        "test_dossier.py", "test_drawn_worlds.py", "test_earlier_artefacts.py", "test_evidence.py", "test_examples.py",
        "test_fitting.py", "test_forgeries.py", "test_import_graph.py", "test_imports.py", "test_killed_stages.py",
        "test_larger_than_memory.py", "test_latent_measures.py", "test_lots_from_disk.py", "test_made_columns.py",
        "test_noisy_counts.py", "test_on_workers.py", "test_planning.py", "test_published.py", "test_published_dpmi.py",
        "test_ratchets.py", "test_readme.py", "test_rehearsal.py", "test_related_rules.py", "test_released_forms.py",
        "test_releasing.py", "test_robustness.py", "test_row_links.py", "test_sampling_in_parts.py", "test_signing.py",
        "test_site.py", "test_syntheses.py", "test_synthesizer.py", "test_visits.py", "test_what_ran.py",
        "test_without_torch.py", "training/test_job.py", "training/test_noisy_sums.py",
    }
)  # fmt: skip
"""What the quick tier leaves out: folders and files of tests."""
SECONDS = Path(__file__).with_name("seconds.json")
"""The files of tests that were seen to take a second or more, and how many."""

exhaustive = pytest.mark.exhaustive
_SHARE = 5
_Any = TypeVar("_Any")


def is_long(path: Path) -> bool:
    """Whether the quick tier leaves out a file or a folder of tests."""
    return is_among(path, LONG)


def is_among(path: Path, names: Collection[str]) -> bool:
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

    A file's stay together, in their order.
    """

    def taken(item: pytest.Item) -> float:
        name = file_of(item.nodeid)
        return seconds.get(name, 3 if is_long(TESTS / name) else 0)

    return sorted(items, key=taken, reverse=True)


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
