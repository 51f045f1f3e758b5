"""Planning of runs: mechanisms, noise and cost, from public facts alone."""

from doublure.planning.plans import Plan, plan
from doublure.planning.wants import least_epsilon

__all__ = ["Plan", "least_epsilon", "plan"]
