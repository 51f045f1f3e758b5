"""What a run will do and cost, before any record is read."""

from doublure.planning.planner import Plan, plan

__all__ = ["Plan", "plan"]
