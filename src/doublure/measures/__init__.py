"""Measures of synthetic records against real ones, with no knowledge of attacks or pages."""
