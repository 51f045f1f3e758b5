"""Measures of tables."""
