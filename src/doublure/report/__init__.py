"""REPORT: pages for people. One self-contained HTML file each, with no script and nothing loaded from elsewhere.

A result names its page, and :func:`page_of` and :func:`write_page` show it; who computes results is unknown here.
Internal pages hold figures computed on real data and say so on every page; an inspection is made from synthetic
images alone.
"""

from doublure.report.build import page_of
from doublure.report.files import Saved, check_places, named_page, write_page, write_private
from doublure.report.page import render

__all__ = ["Saved", "check_places", "named_page", "page_of", "render", "write_page", "write_private"]
