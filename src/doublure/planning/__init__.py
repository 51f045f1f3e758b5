"""Planning of runs: mechanisms, noise and cost, from public facts alone."""

from doublure.planning.plans import Plan, plan

__all__ = ["Plan", "plan"]
