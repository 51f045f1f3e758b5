"""A screen: what it shows, what it takes, and the same without the studio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from doublure.studio.project import Project
from doublure.studio.script import Same
from doublure.studio.visit import Studio, Visit


class Page(NamedTuple):
    """A template and what it shows.

    Attributes:
        template: Its name in ``templates/``.
        context: Its variables, beside those of every page (``visit``, ``project``, ``step``, ``steps``, ``same``).
    """

    template: str
    context: Mapping[str, Any]


Taken: TypeAlias = Callable[[Visit], str]
"""Takes a form; returns the address to go on to. Errors are told on the step's own page."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A screen of the studio.

    Attributes:
        key: Its word in addresses: ``/key``.
        title: Its name.
        show: Shows it.
        takes: Word -> what takes the form that is sent to ``/key/word``.
        parts: Word -> what answers ``/key/word``: a part of the page, or a file (a Starlette response).
        same: The same without the studio; None while there is nothing to run.
        done: Whether the next step can follow.
        aside: Whether it stands beside the way, and nothing follows it.
    """

    key: str
    title: str
    show: Callable[[Visit], Page]
    takes: Mapping[str, Taken] = field(default_factory=dict)
    parts: Mapping[str, Callable[[Visit], Any]] = field(default_factory=dict)
    same: Callable[[Project], Same | None]
    done: Callable[[Studio], bool]
    aside: bool = False
