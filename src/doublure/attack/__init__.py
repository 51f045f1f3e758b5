"""Attacks on our own work. Internal: what they print is computed on private data or on the mechanism itself."""

from doublure.attack import audit, bounds

__all__ = ["audit", "bounds"]
