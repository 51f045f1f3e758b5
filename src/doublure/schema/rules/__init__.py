"""Public rules between columns, kept by every sampled row: one file a rule, and a line of each in ``registry.py``."""
