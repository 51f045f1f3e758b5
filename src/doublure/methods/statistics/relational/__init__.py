"""``statistics`` on related tables."""
