"""Attacks on our own work. Internal: what they find is computed on private data or on the mechanism itself."""

import doublure.evaluate as _evaluate  # evaluation shows attacks, and attacks measure as it does: it has to come first
from doublure.attack import audit, bounds
from doublure.attack.results import AttackResult

del _evaluate

__all__ = ["AttackResult", "audit", "bounds"]
