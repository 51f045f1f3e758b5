"""Statistics of images."""
