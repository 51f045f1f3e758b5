"""Phrases that say whether cells may be empty: ``never empty``, ``may be left blank``, ``required``.

They stand in headings and in cells of a codebook. A phrase is read if every word of it is listed here.
"""

from __future__ import annotations

import re

_WORDS = {
    "blank": "empty blank blanks missing null nullable absent omitted optional unanswered",
    "filled": "filled complete mandatory required compulsory obligatory present entered answered",
    "not": "never not no none cannot without non t",
    "may": "may can could might sometimes often usually possible possibly allowed permitted",
    "must": "must always",
    "filler": "is are be it this the a cell cells field fields value values left in out or need have has should don "
    "isn entry entries answer answers to do does all",
}
"""Meaning -> the words that say it."""
_SAYS = {word: says for says, words in _WORDS.items() for word in words.split()}
_LONE = "empty blank blanks nullable optional complete mandatory required compulsory obligatory nothing"
_ALONE = frozenset(_LONE.split())
"""Words that say it without another; any other alone may be a text that stands for missing."""
_YES = frozenset({"yes", "true", "allowed", "possible", "sometimes", "nothing"})
_NO = frozenset({"never", "no", "none", "false", "not allowed", "not possible"})
_SHORT = {"y": True, "x": True, "1": True, "n": False, "0": False}
"""Answers that are texts for missing in a list of them."""
_IF = re.compile(r"\s(?:if|when|where|until|unless|while|for)\s")


def plain_words(text: str) -> str:
    """Return a text in small letters without marks; ``VariableName`` and ``variable_name`` are two words.

    Example:
        >>> plain_words("MinimumValue"), plain_words("May be blank?")
        ('minimum value', 'may be blank')
    """
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()))


def may_be_empty(text: str) -> bool | None:
    """Return whether a phrase says that cells may be empty; None where it says neither for certain.

    Example:
        >>> [may_be_empty(each) for each in ("never empty", "may be left blank", "not required", "unknown")]
        [False, True, True, None]
        >>> may_be_empty("empty if not measured"), may_be_empty("never empty if admitted")
        (True, None)
    """
    phrase, *condition = _IF.split(plain_words(text), maxsplit=1)
    words = phrase.split()
    says = [_SAYS.get(word) for word in words]
    about = {each for each in says if each in ("blank", "filled")}
    if None in says or len(about) != 1 or (len(words) == 1 and words[0] not in _ALONE):
        return None
    negated, of_blanks = says.count("not") % 2 == 1, "blank" in about
    if not negated and ("must" if of_blanks else "may") in says:  # "always empty", "sometimes filled"
        return None
    found = of_blanks != negated
    return None if condition and not found else found  # a condition on "never" leaves the other rows open


def answered(text: str, *, required: bool | None) -> bool | None:
    """Return whether a cell says that cells of its column may be empty.

    Args:
        text: The cell.
        required: Whether its heading asks if cells are filled; None under a heading of texts for missing.

    Example:
        >>> answered("yes", required=False), answered("yes", required=True), answered("x", required=None)
        (True, False, None)
    """
    if (said := may_be_empty(text)) is not None:
        return said
    plain = plain_words(text)
    if required is not None and plain in _SHORT:
        return _SHORT[plain] != required
    return None if plain not in _YES | _NO else (plain in _YES) != bool(required)
