"""The auditable core: the only code that may touch private tensors while a guarantee is claimed.

Siblings do not import one another; ``mechanism``, ``tabulation``, ``sums``, ``voting`` and ``facts`` join them.
``accounting`` and ``bayesian`` are usable on their own.
"""
