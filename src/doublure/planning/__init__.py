"""What a run will do and cost, before any record is read."""

from doublure.planning.plans import Plan, plan

__all__ = ["Plan", "plan"]
