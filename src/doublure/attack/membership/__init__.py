"""Membership inference: attacks on the question whether a record was in the fitted data."""
