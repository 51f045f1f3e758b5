"""Which attacks there are on a run: name -> where it is.

A new attack is one file and one line here; one that scores targets, an entry in
:mod:`doublure.attack.membership.scores` and a line; one that is defined elsewhere is registered (docs/extending.md).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from doublure.attack.attack_data import AttackData
from doublure.attack.results import AttackResult
from doublure.errors import SettingError
from doublure.support.guessing import meant

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
ATTACKS: dict[str, str] = {
    **_MEMBERSHIP,
    **_LINKAGE,
    "neighbours": "neighbours:attack",
    "canary": "canary:attack",
    "inversion": "inversion:attack",
}
REFITS = frozenset({"shadow", "lira", "canary"})
"""Those that fit the plan again, once or many times."""

GROUPS: dict[str, tuple[str, ...]] = {
    "membership": tuple(name for name in _MEMBERSHIP if name not in REFITS),
    "linkage": tuple(_LINKAGE),
    "quick": tuple(name for name in ATTACKS if name not in REFITS and name != "inversion"),
    "all": tuple(ATTACKS),
}

_REGISTERED: dict[str, Callable[[AttackData], AttackResult]] = {}


def register(name: str, attack: Callable[[AttackData], AttackResult]) -> None:
    """Let audits name an attack that is defined elsewhere. It holds for this process, and is in no group.

    Args:
        name: As it is asked for.
        attack: Takes what there is to attack with, and returns what it found.

    Raises:
        SettingError: An attack or a group of this package has that name.
    """
    if name in ATTACKS or name in GROUPS:
        raise SettingError(f"{name!r} is an attack of doublure", field="name", remedy="choose another name")
    _REGISTERED[name] = attack


def named(wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the attacks of these names and groups, each once, in the order of the table.

    Raises:
        SettingError: There is no such attack, or none was named.
    """
    found: set[str] = set()
    for name in wanted:
        if name not in ATTACKS and name not in GROUPS and name not in _REGISTERED:
            remedy = meant(name, [*GROUPS, *ATTACKS, *_REGISTERED])
            raise SettingError(f"there is no attack {name!r}", field="--attack", remedy=remedy)
        found.update(GROUPS.get(name, (name,)))
    if not found:
        raise SettingError(
            "is needed", field="--attack", remedy=f"use one of: {', '.join([*GROUPS, *ATTACKS, *_REGISTERED])}"
        )
    return tuple(name for name in (*ATTACKS, *_REGISTERED) if name in found)


def run(data: AttackData, wanted: Sequence[str]) -> tuple[AttackResult, ...]:
    """Make attacks, one after the other.

    Args:
        data: The attack data.
        wanted: Their names, or groups of them.

    Raises:
        SettingError: There is no such attack.
    """
    found = []
    for name in named(wanted):
        data.progress.stage(f"attack: {name}")
        found.append(_attack(name)(data))
    return tuple(found)


def _attack(name: str) -> Callable[[AttackData], AttackResult]:
    if name in _REGISTERED:
        return _REGISTERED[name]
    module, _, function = ATTACKS[name].partition(":")
    attack: Callable[[AttackData], AttackResult] = getattr(
        importlib.import_module(f"doublure.attack.{module}"), function
    )
    return attack
