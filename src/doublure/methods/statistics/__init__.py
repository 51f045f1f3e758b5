"""Generators fitted to noisy counts and sums."""
