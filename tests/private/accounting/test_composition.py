"""What a group of units that change together is promised."""

import pytest

from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent, epsilon_of
from doublure.private.accounting.composition import group_epsilon_of, group_privacy

LOTS = [GaussianEvent(noise_multiplier=4.0, sample_rate=0.01, steps=1000)]


def test_without_a_delta_a_group_pays_in_epsilon_alone():
    assert group_privacy(0.5, 0.0, 4) == (2.0, 0.0)


@pytest.mark.parametrize("size", [1, 3])
def test_what_touches_nothing_promises_everything_to_any_group(size):
    assert group_epsilon_of([], 1e-5, size=size) == 0.0


@pytest.mark.parametrize(("accountant", "pair", "four"), [("pld", 0.58245, 1.25200), ("rdp", 0.63846, 1.37329)])
def test_a_group_pays_the_least_over_the_whole_curve(accountant, pair, four):
    single = epsilon_of(LOTS, 1e-5, accountant=accountant)
    assert group_epsilon_of(LOTS, 1e-5, size=1, accountant=accountant) == single
    found = [group_epsilon_of(LOTS, 1e-5, size=size, accountant=accountant) for size in (2, 4)]
    assert found == pytest.approx([pair, four], rel=1e-3)
    assert found[0] < 2 * 1.1 * single


@pytest.mark.parametrize(
    ("given", "field"), [((-0.1, 1e-5, 2), "epsilon"), ((1.0, -1e-9, 2), "delta"), ((1.0, 1.0, 2), "delta")]
)
def test_what_is_no_promise_is_refused(given, field):
    with pytest.raises(SettingError) as caught:
        group_privacy(*given)
    assert caught.value.field == field
