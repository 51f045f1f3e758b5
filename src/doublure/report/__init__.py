"""REPORT: pages for people. One self-contained HTML file each, with no script and nothing loaded from elsewhere.

Internal pages (:func:`internal_page`, :func:`write_internal`) hold figures computed on real data and say so on every
page; an inspection (:func:`inspection_page`) is made from artificial images alone; the public card (:func:`card_page`)
is what goes into a bundle.
"""

from doublure.releasing.card import card_page
from doublure.report.build import internal_page
from doublure.report.files import check_places, write_inspection, write_internal, write_private
from doublure.report.inspection import inspection_page
from doublure.report.page import render

__all__ = [
    "card_page",
    "check_places",
    "inspection_page",
    "internal_page",
    "render",
    "write_inspection",
    "write_internal",
    "write_private",
]
