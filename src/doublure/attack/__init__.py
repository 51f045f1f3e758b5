"""Attacks on fitted synthesizers and on the mechanism itself; results are internal."""

from doublure.attack import bounds
from doublure.attack.results import AttackResult

__all__ = ["AttackResult", "bounds"]
