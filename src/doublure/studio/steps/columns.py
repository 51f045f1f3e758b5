"""Columns: a table with one row a column: its type, what is public about it, and what is still open."""

from __future__ import annotations

from doublure.studio import script
from doublure.studio.step import Page, Step
from doublure.studio.visit import Studio, Visit


def show(visit: Visit) -> Page:
    """Show the columns."""
    return Page("columns.html.j2", {})


def done(studio: Studio) -> bool:
    """Return whether nothing is undeclared."""
    project = studio.project
    return bool(project.schema_file) and not studio.schema(project).undeclared


STEP = Step(key="columns", title="Columns", show=show, same=script.schema, done=done)
