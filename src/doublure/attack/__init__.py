"""Attacks on our own work. Internal: what they find is computed on private data or on the mechanism itself."""

from doublure.attack import bounds
from doublure.attack.results import AttackResult

__all__ = ["AttackResult", "bounds"]
