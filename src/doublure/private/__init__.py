"""The auditable core: the only code that may touch private records while a guarantee is claimed.

A query states its sensitivity and answers; the mechanism joins it with the plan's access, noise and authorisation.
``README.md`` beside this file prints the reading paths. ``accounting`` and ``bayesian`` are usable on their own.
"""
