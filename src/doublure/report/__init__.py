"""Self-contained HTML pages for people, with no script and nothing loaded from elsewhere.

A result makes its page (:class:`PageResult`); its figures are computed elsewhere. Internal pages hold figures computed
on real data and say so on every page. An inspection is made from synthetic records alone.
"""

from doublure.report.files import PageResult, check_places, named_page, write_private
from doublure.report.page import render

__all__ = ["PageResult", "check_places", "named_page", "render", "write_private"]
