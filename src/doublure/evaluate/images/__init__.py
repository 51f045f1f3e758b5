"""Measures of images."""
