"""Noisy counts and sums train a generator."""
