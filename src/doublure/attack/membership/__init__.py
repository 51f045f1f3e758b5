"""Membership: was this record among those that were learned from? Attacks that score it are one table."""
