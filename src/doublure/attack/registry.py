"""Registry of attacks on a run: name -> module path.

A new attack takes one file and one line here; one that scores targets, an entry in
:mod:`doublure.attack.membership.scores` and a line. Attacks from outside the package are registered
(docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import TypeAlias

from doublure.attack.attack_data import AttackData
from doublure.attack.results import AttackResult
from doublure.errors import SettingError
from doublure.support.guessing import Registry

Attack: TypeAlias = Callable[[AttackData], AttackResult]

_MEMBERSHIP = {
    "critic": "membership.scores:CRITIC",
    "gan-leaks": "membership.scores:GAN_LEAKS",
    "gan-leaks-partial": "membership.scores:GAN_LEAKS_PARTIAL",
    "gan-leaks-calibrated": "membership.scores:GAN_LEAKS_CALIBRATED",
    "monte-carlo": "membership.scores:MONTE_CARLO",
    "domias": "membership.scores:DOMIAS",
    "shadow": "membership.shadow:attack",
    "lira": "membership.lira:attack",
}
_LINKAGE = {
    "singling-out": "linkage.singling_out:attack",
    "linkability": "linkage.linkability:attack",
    "inference": "linkage.inference:attack",
}
_PLACES = {
    **_MEMBERSHIP,
    **_LINKAGE,
    "neighbours": "neighbours:attack",
    "canary": "canary:attack",
    "one-run": "one_run:attack",
    "inversion": "inversion:attack",
}
REFITS = frozenset({"shadow", "lira", "canary", "one-run"})
"""Attacks that refit the plan, once or many times."""
OWN_RECORDS = frozenset({"canary", "one-run"})
"""Attacks that make the records to compare with, and so need none that were kept aside."""

GROUPS: dict[str, tuple[str, ...]] = {
    "membership": tuple(name for name in _MEMBERSHIP if name not in REFITS),
    "linkage": tuple(_LINKAGE),
    "quick": tuple(name for name in _PLACES if name not in REFITS and name != "inversion"),
    "all": tuple(_PLACES),
}


def _at(place: str) -> Attack:
    """Return the attack at a place; its module is imported on the first call."""

    def attack(data: AttackData) -> AttackResult:
        made: Attack = resolve_name(f"doublure.attack.{place}")
        return made(data)

    return attack


ATTACKS: Registry[Attack] = Registry(
    "attack", {name: _at(place) for name, place in _PLACES.items()}, field="--attack", beside=GROUPS
)


def register(name: str, attack: Attack) -> None:
    """Add an attack to the audits of this process; it is in no group.

    Args:
        name: Its name in requests.
        attack: Takes the attack data and returns its result.

    Raises:
        SettingError: An attack or a group of this package has that name.
    """
    ATTACKS.register(name, attack)


def named(wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the attacks of these names and groups, each once, in the order of the table.

    Raises:
        SettingError: There is no such attack, or none was named.
    """
    found: set[str] = set()
    for name in wanted:
        if name not in GROUPS and name not in ATTACKS:
            raise ATTACKS.unknown(name)
        found.update(GROUPS.get(name, (name,)))
    if not found:
        raise SettingError("is needed", field=ATTACKS.field, remedy=f"use one of: {', '.join(ATTACKS.names)}")
    return tuple(name for name in ATTACKS if name in found)


def run(data: AttackData, wanted: Sequence[str]) -> tuple[AttackResult, ...]:
    """Run attacks, one after the other.

    Args:
        data: The attack data.
        wanted: Their names, or groups of them.

    Raises:
        SettingError: There is no such attack.
    """
    found = []
    for name in named(wanted):
        data.progress.stage(f"attack: {name}")
        found.append(ATTACKS[name](data))
    return tuple(found)
