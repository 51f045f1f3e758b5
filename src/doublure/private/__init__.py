"""The auditable core: the only code that may touch private tensors while a guarantee is claimed.

Siblings do not import one another; :mod:`doublure.private.mechanism` alone joins them. ``accounting`` and
``bayesian`` are usable on their own.
"""
