"""The names of the files that describe a bundle for data catalogues."""

from __future__ import annotations

DATAPACKAGE, CROISSANT, README = NAMES = ("datapackage.json", "croissant.json", "README.md")
