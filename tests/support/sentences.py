"""How long the sentences of a page are, for the rhythm that CONTRIBUTING asks for: python sentences.py PAGE."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

LONGEST, MEAN = 35, 16.0
"""Most words of a sentence, and the most that a page's sentences have in the mean."""
_ABBREVIATED = re.compile(r"\b(?:e\.g|i\.e|cf|vs|et al|eq|Eq|Fig|no|nr|approx|Dr|St)\.$")
_END = re.compile(r"(?<=[.!?])[)\"'*_]*\s+(?=[A-ZÀ-Þ0-9\"'(`*\[])|;\s+|:\s*$")


@dataclass(frozen=True, kw_only=True)
class Prose:
    """The sentences of a text.

    Attributes:
        sentences: In their order.
    """

    sentences: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Words of a sentence."""
        return sum(map(words, self.sentences)) / max(1, len(self.sentences))

    @property
    def long(self) -> list[str]:
        """Sentences of more words than a reader keeps in mind."""
        return [each for each in self.sentences if words(each) > LONGEST]


def words(sentence: str) -> int:
    """Return how many words a reader reads: code and a span of code is one word, a link those of its text."""
    return len(re.findall(r"[^\s/]*[\w%€$][^\s/]*", sentence))


def read(text: str) -> int:
    """Return how many words a page has, with tables and code: between spaces, with a letter or a digit."""
    return sum(bool(re.search(r"\w", each)) for each in text.split())


def of_markdown(text: str) -> Prose:
    """Return the prose of a page: no code, no table, no heading, no address."""
    text = re.sub(r"^---\n.*?^---\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`\n]*`", "Code", text)  # a capital: a sentence may begin with it
    found: list[str] = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)", text):
        lines = [line for line in block.splitlines() if not re.match(r"\s*(\||#|=====|<)", line)]
        joined = re.sub(r"^\s*(?:[-*>]|\d+\.)\s+", "", " ".join(line.strip() for line in lines)).strip()
        found += split(joined)
    return Prose(sentences=tuple(found))


def split(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    found: list[str] = []
    begun = ""
    for part in _END.split(re.sub(r"\*\*|__", "", text)):
        begun = f"{begun} {part}".strip()
        if not _ABBREVIATED.search(begun):
            found.append(begun)
            begun = ""
    return [each for each in [*found, begun] if words(each)]


if __name__ == "__main__":
    for page in sys.argv[1:]:
        prose = of_markdown(Path(page).read_text(encoding="utf-8"))
        print(f"{page}: {prose.mean:.1f} words a sentence, {len(prose.long)} longer than {LONGEST}")
        for each in prose.long:
            print(f"   {words(each)}: {each}")
