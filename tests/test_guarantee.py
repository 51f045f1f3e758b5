"""What may be claimed, in the design's words, and no figure that claims more than was paid for."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from doublure.errors import RunFolderError
from doublure.guarantee import (
    BAYESIAN_ASSUMPTIONS,
    CHOICE_OF_KIND,
    REFUSALS,
    WATERMARKS,
    Guarantee,
    as_worded_formerly,
    as_worded_now,
    claim_as_worded_now,
    figure,
    rounded_up,
)
from doublure.planning.explain import derived_claims

DP = {
    "kind": "dp", "epsilon": 1.0, "delta": 1e-5, "accountant": "pld", "sample_rate": 0.01, "noise_multiplier": 1.1,
    "steps": 600, "noise_source": "os-keyed",
}  # fmt: skip
BAYESIAN = {
    "kind": "bayesian-dp", "epsilon_mu": 0.8, "delta_mu": 1e-10, "epsilon": 3.0, "delta": 1e-5, "gamma": 1e-15,
    "distances": 20, "bound": "Student-t", "excluded": (CHOICE_OF_KIND,),
}  # fmt: skip
EMPIRICAL = {"kind": "empirical", "mu": 0.4, "gamma": 0.01}
NONE = {"kind": "none"}
ALL = [DP, BAYESIAN, EMPIRICAL, NONE]


def test_one_step_is_one_and_a_claim_of_before_is_still_read():
    one = Guarantee(**DP | {"steps": 1})
    assert ", 1 noisy step, " in one.sentence
    former = one.sentence.replace("1 noisy step,", "1 noisy steps,")
    assert as_worded_now(former) == one.sentence
    assert as_worded_formerly(one.sentence) == former
    assert Guarantee.from_json(one.to_json() | {"sentence": former}) == one
    several = Guarantee(**DP | {"steps": 11})
    assert as_worded_now(several.sentence) == as_worded_formerly(several.sentence) == several.sentence


def test_a_sentence_that_named_some_exclusions_alone_is_still_read():
    for fields in (DP | {"excluded": ("timing side channels", "internal reports", REFUSALS)}, BAYESIAN):
        claim = Guarantee(**fields)
        assert claim.former_sentence != claim.sentence
        assert Guarantee.from_json(claim.to_json() | {"sentence": claim.former_sentence}) == claim
        assert claim_as_worded_now(claim.to_json() | {"sentence": claim.former_sentence}) == claim.to_json()
    assert claim_as_worded_now({"sentence": "no claim"}) == {"sentence": "no claim"}


def test_an_edited_claim_names_what_does_not_go_together():
    written = Guarantee(**DP).to_json()
    with pytest.raises(RunFolderError, match="sentence: is not the sentence that its figures give"):
        Guarantee.from_json(written | {"epsilon": 0.5})
    with pytest.raises(RunFolderError, match="has figures that make no guarantee"):
        Guarantee.from_json(written | {"delta": 2.0})


def test_dp_in_the_designs_words():
    assert Guarantee(**DP).sentence == (
        "(ε=1, δ=1e-05)-differentially private for one person, add/remove neighbours, Poisson lots q=0.01, "
        "600 noisy steps, accountant pld; given the declared schema. "
        "Not covered: floating-point and timing side channels; internal reports."
    )


def test_bayesian_in_the_designs_words():
    assert Guarantee(**BAYESIAN).sentence == (
        "(ε_μ ≤ 0.8, δ_μ=1e-10)-Bayesian DP for records drawn from the data's own distribution, estimated from 20 "
        "gradient distances per step at confidence 1−1e-15 (Student-t; heuristic); a record from elsewhere is covered "
        "only by the worst-case (ε=3, δ=1e-05) of the same run. Not covered: floating-point and timing side channels; "
        "internal reports. Which claim was made depends on the private data and is not accounted for."
    )
    assert "heuristic" not in Guarantee(**BAYESIAN | {"bound": "empirical Bernstein"}).sentence
    assert "at confidence 0.95 (" in Guarantee(**BAYESIAN | {"gamma": 0.05}).sentence


def test_empirical_in_the_designs_words():
    assert Guarantee(**EMPIRICAL).sentence == (
        "Empirical estimate for this data set only: expected privacy loss μ=0.4 at γ=0.01. "
        "This is not ε and bounds no individual's risk."
    )


def test_an_estimate_that_was_not_made_is_said_to_be_none():
    bare = Guarantee(kind="empirical")
    assert bare.sentence == (
        "Empirical estimate for this data set only: expected privacy loss not estimated. "
        "This is not ε and bounds no individual's risk."
    )
    assert Guarantee.from_json(json.loads(json.dumps(bare.to_json()))) == bare


def test_an_estimate_takes_its_place_in_the_claim_and_leaves_it_again():
    bare = Guarantee(kind="empirical", unit="image", assumptions=("the declared facts are public",))
    stated = bare.estimated(mu=0.4, gamma=0.01, basis="99 pairs")
    assert (stated.mu, stated.gamma, stated.unit) == (0.4, 0.01, "image")
    assert stated.assumptions == (
        "the declared facts are public", "99 pairs", "μ was itself computed from real records, without noise",
    )  # fmt: skip
    assert stated.unestimated == bare
    assert bare.unestimated == bare
    assert stated.estimated(mu=0.5, gamma=0.02, basis="49 pairs") == bare.estimated(
        mu=0.5, gamma=0.02, basis="49 pairs"
    )
    assert Guarantee.from_json(stated.to_json()) == stated
    for figures in ({"mu": -0.1, "gamma": 0.01}, {"mu": 0.1, "gamma": 1.0}, {"mu": float("nan"), "gamma": 0.1}):
        with pytest.raises(ValidationError):
            bare.estimated(**figures, basis="")


@pytest.mark.parametrize("fields", [DP, BAYESIAN, NONE])
def test_no_other_kind_has_a_place_for_it(fields):
    with pytest.raises(ValidationError):
        Guarantee(**fields).estimated(mu=0.4, gamma=0.01, basis="99 pairs")
    assert Guarantee(**fields).unestimated == Guarantee(**fields)


def test_none_in_the_designs_words():
    assert Guarantee(**NONE).sentence == "No privacy guarantee. Do not publish."
    assert "do not publish" in Guarantee(**NONE).watermark


def test_several_records_of_a_unit_are_said():
    several = Guarantee(**DP | {"unit": "patient", "max_records": 3})
    assert "for one patient (at most 3 records of each are used)," in several.sentence


def test_a_full_batch_is_no_poisson_lot():
    assert "full batch" in Guarantee(**DP | {"sample_rate": 1.0}).sentence


@pytest.mark.parametrize("fields", ALL)
def test_every_kind_has_its_own_mark_and_no_forbidden_word(fields):
    guarantee = Guarantee(**fields)
    assert guarantee.watermark == WATERMARKS[guarantee.kind]
    said = (guarantee.sentence + guarantee.watermark).lower()
    assert "anonym" not in said
    assert "safe" not in said
    assert len(set(WATERMARKS.values())) == 4


@pytest.mark.parametrize("fields", ALL)
def test_it_comes_back_from_json(fields):
    guarantee = Guarantee(**fields)
    text = json.dumps(guarantee.to_json(), allow_nan=False)
    assert Guarantee.from_json(json.loads(text)) == guarantee


@pytest.mark.parametrize("fields", ALL)
def test_its_keys_are_those_of_the_contract(fields):
    written = Guarantee(**fields).to_json()
    assert set(written) == {
        "kind", "epsilon", "delta", "epsilon_mu", "delta_mu", "mu", "gamma", "unit", "max_records", "relation",
        "accountant", "sample_rate", "noise_multiplier", "steps", "noise_source", "assumptions", "excluded", "sentence",
    }  # fmt: skip
    with pytest.raises(RunFolderError):
        Guarantee.from_json(written | {"distances": None})


def test_what_an_estimate_rests_on_is_among_the_assumptions():
    assert Guarantee(**BAYESIAN).to_json()["assumptions"] == ["20 gradient distances per step, bound Student-t"]
    edited = Guarantee(**BAYESIAN | {"distances": 2000}).to_json()["assumptions"]
    with pytest.raises(RunFolderError):
        Guarantee.from_json(Guarantee(**BAYESIAN).to_json() | {"assumptions": edited})


@pytest.mark.parametrize("fields", [DP, BAYESIAN, EMPIRICAL])
def test_a_claim_without_its_figures_is_none(fields):
    for name in set(fields) & {"epsilon", "delta", "mu", "gamma", "epsilon_mu", "delta_mu", "distances", "bound"}:
        with pytest.raises(ValidationError):
            Guarantee(**{key: value for key, value in fields.items() if key != name})


@pytest.mark.parametrize("kind", [EMPIRICAL, NONE])
@pytest.mark.parametrize("figures", [{"epsilon": 1.0}, {"delta": 1e-5}, {"epsilon_mu": 1.0}, {"distances": 20}])
def test_what_is_no_dp_states_no_epsilon(kind, figures):
    with pytest.raises(ValidationError):
        Guarantee(**kind | figures)


@pytest.mark.parametrize(
    "figures",
    [
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": -1.0},
        {"delta": 1.5},
        {"delta": -1e-9},
        {"extra": 1},
    ],
)
def test_figures_that_are_none_are_refused(figures):
    with pytest.raises(ValidationError):
        Guarantee(**DP | figures)


def test_a_guarantee_cannot_be_changed():
    with pytest.raises(ValidationError):
        Guarantee(**DP).epsilon = 0.1


@pytest.mark.parametrize(
    "edit",
    [
        {"epsilon": 0.1},
        {"sentence": "Perfectly private."},
        {"kind": "none"},
        {"more": 1},
        {"kind": "perfect"},
        {"steps": "x"},
        {"assumptions": 5},
        {"assumptions": [5]},
    ],
)
def test_an_edited_claim_is_refused(edit):
    with pytest.raises(RunFolderError):
        Guarantee.from_json(Guarantee(**DP).to_json() | edit)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_printed_figure_never_claims_less_than_it_is(value):
    printed = float(figure(value))
    assert printed >= value
    assert printed <= value * 1.001


def test_round_figures_stay_round():
    assert [figure(value) for value in (1.0, 3.0, 1e-5, 0.5, 99.99, None)] == [
        "1",
        "3",
        "1e-05",
        "0.5",
        "99.99",
        "unknown",
    ]
    assert figure(2.99612) == "2.997"


def test_the_worst_case_of_a_bayesian_claim_is_a_dp_claim():
    both = Guarantee(**BAYESIAN | {"accountant": "pld", "steps": 7, "assumptions": ("a fact", *BAYESIAN_ASSUMPTIONS)})
    left = both.worst_case
    assert (left.kind, left.epsilon, left.delta, left.steps, left.accountant) == ("dp", 3.0, 1e-5, 7, "pld")
    assert (left.epsilon_mu, left.delta_mu, left.gamma, left.distances, left.bound) == (None,) * 5
    assert left.assumptions == ("a fact",)
    assert left.excluded == (CHOICE_OF_KIND,)
    assert left.sentence.endswith(" Which claim was made depends on the private data and is not accounted for.")
    assert "Which claim" not in Guarantee(**DP).sentence
    assert left.worst_case is left
    assert Guarantee.from_json(left.to_json()) == left


@pytest.mark.parametrize(
    ("value", "digits", "rounded"), [(0.12301, 3, 0.124), (1e-5, 3, 1e-5), (1.0, 3, 1.0), (12345.6, 4, 12350.0)]
)
def test_figures_are_rounded_up(value, digits, rounded):
    assert rounded_up(value, digits) == rounded
    assert rounded_up(value, digits) >= value


def test_what_a_claim_says_of_groups_and_of_most_records():
    dp = {"epsilon": 0.5, "delta": 1e-6}
    assert derived_claims("dp", dp) == [
        ("a group of 2", "ε = 1, δ = 2.649e-06"),  # δ (1 + e^½)
        ("a group of 5", "ε = 2.5, δ = 1.724e-05"),
    ]
    assert derived_claims("dp", {"epsilon": 9.0, "delta": 1e-6})[1:] == []  # of five nothing would be guaranteed
    assert derived_claims("none", dp) == derived_claims("empirical", dp) == []
    bayesian = derived_claims("bayesian-dp", dp | {"epsilon_mu": 3.0, "delta_mu": 1e-10})
    assert bayesian[:2] == derived_claims("dp", dp)
    assert bayesian[2:] == [
        ("2 records like the others", "ε_μ ≤ 6, δ_μ = 8.069e-08"),  # 2 e⁶ δ_μ
        ("5 records like the others", "ε_μ ≤ 15, δ_μ = 0.001635"),
        ("0.99 of all records like the others", "ε_μ ≤ 3, δ_μ = 1e-08"),
        ("0.9999 of all records like the others", "ε_μ ≤ 3, δ_μ = 1.001e-06"),
    ]
