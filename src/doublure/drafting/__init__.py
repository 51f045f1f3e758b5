"""A first schema from a file: drafted, and checked against it."""
