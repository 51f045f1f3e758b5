"""Private Evolution: votes of private images for public candidates."""
