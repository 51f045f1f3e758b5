"""Orders of two columns that a codebook says in words, such as ``not before admission``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from doublure.drafting.metadata.blank_words import plain_words

_SAID = re.compile(
    r"(?P<late>(?:not|never|no) (?:before|earlier than)|(?:on or |at or )?after|at least)"
    r" |(?P<early>(?:not|never|no) (?:after|later than)|(?:on or |at or )?before|at most) "
)


def order_in_words(text: str, name: str, others: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the two columns, the lesser first, whose order a text says; None where it says none for certain.

    Args:
        text: All that a codebook says of the column's values.
        name: The column.
        others: The columns that may be meant, of the same type -> their descriptions.

    Example:
        >>> order_in_words("not before admission", "discharged", {"admitted": "date of admission", "born": "birth"})
        ('admitted', 'discharged')
        >>> order_in_words("not after the end", "start", {"end_a": "", "end_b": ""})
    """
    words = plain_words(text)
    found = _SAID.match(words)
    if found is None:
        return None
    rest = re.sub(r"^(?:the|date of|day of|time of) ", "", words[found.end() :])
    named = [other for other in others if plain_words(other) == rest]
    told = [other for other, says in others.items() if rest and rest in (*plain_words(says).split(), plain_words(says))]
    meant = named or told
    if len(meant) != 1 or meant[0] == name:
        return None
    return (meant[0], name) if found["late"] else (name, meant[0])
