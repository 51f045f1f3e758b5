"""What a group of units that change together is promised."""

import pytest

from doublure.errors import SettingError
from doublure.private.accounting.composition import group_privacy


def test_without_a_delta_a_group_pays_in_epsilon_alone():
    assert group_privacy(0.5, 0.0, 4) == (2.0, 0.0)


@pytest.mark.parametrize(
    ("given", "field"), [((-0.1, 1e-5, 2), "epsilon"), ((1.0, -1e-9, 2), "delta"), ((1.0, 1.0, 2), "delta")]
)
def test_what_is_no_promise_is_refused(given, field):
    with pytest.raises(SettingError) as caught:
        group_privacy(*given)
    assert caught.value.field == field
