"""Descriptions of a release for data catalogues: a file a format."""
