"""How figures are written, wherever they stand."""

from __future__ import annotations

import pytest

from doublure.results import p_value, span


@pytest.mark.parametrize(
    ("p", "said"),
    [(1.0, "1.000"), (0.0213, "0.021"), (0.001, "0.001"), (2.4e-8, "2e-08"), (1e-15, "1e-15")],
)
def test_a_p_value_is_written_alike_alone_and_in_a_sentence(p, said):
    assert p_value(p) == said
    assert p_value(p, "p") == f"p = {said}"


@pytest.mark.parametrize("p", [0.0, 9e-16])
def test_a_p_value_is_never_said_to_be_nothing(p):
    assert p_value(p) == "< 1e-15"
    assert p_value(p, "p") == "p < 1e-15"


def test_an_interval_of_shares_is_in_percent():
    assert span((0.0931, 0.12), shares=True) == "9.3 to 12.0\u00a0%"
    assert span((0.0931, 0.12)) == "0.093 to 0.120"
    assert span(None) == span(None, shares=True) == ""
