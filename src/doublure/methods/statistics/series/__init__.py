"""Statistics of series."""
