"""The rhythm of what people read: no sentence of a page is long, and in the mean they are short."""

from __future__ import annotations

from pathlib import Path

import pytest
from sentences import LONGEST, MEAN, of_markdown, read, split, words

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BUDGET = 29_650
"""Most words of all pages outside docs/evidence together, tables and code among them; it only gets smaller."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_reads_in_short_sentences(page):
    prose = of_markdown(page.read_text(encoding="utf-8"))
    faults = [f"{words(each)} words: {each}" for each in prose.long]
    if prose.mean > MEAN:
        faults.append(f"{prose.mean:.1f} words a sentence in the mean, at most {MEAN:g}")
    assert not faults, "\n".join([f"{page.relative_to(ROOT)}:", *faults])


def test_pages_outside_the_evidence_keep_their_budget():
    lengths = {page.name: read(page.read_text(encoding="utf-8")) for page in (ROOT / "docs").glob("*.md")}
    longest = sorted(lengths, key=lengths.__getitem__, reverse=True)[:5]
    remedy = "replace before you add, or move what few look up to docs/evidence"
    told = ", ".join(f"{name} {lengths[name]}" for name in longest)
    assert sum(lengths.values()) <= BUDGET, f"{remedy}; the longest are {told}"


def test_words_of_a_page_are_those_that_are_read():
    assert read("| a | 2 words |\n|---|--:|\n\n```\ndb.plan(schema) # no data\n```\n- [x](y.md) – z\n") == 8


def test_sentences_are_counted_as_they_are_read():
    long = " ".join(["word"] * (LONGEST + 1))
    page = (
        f"# Title\n\nOne of [two](a/b.md) `and three`. Et al. is one (Smith et al. 2020).\n\n- {long}.\n\n| {long} |\n"
    )
    prose = of_markdown(page)
    assert [words(each) for each in prose.sentences] == [4, 8, LONGEST + 1]
    assert prose.long == [f"{long}."]
    assert len(of_markdown("It is `fit`. `sample` follows, e.g. `sample run`.").sentences) == 2
    assert split("It costs 1.5 GB. Then it ends.") == ["It costs 1.5 GB.", "Then it ends."]
