import jinja2
import pytest

from doublure.errors import InputError
from doublure.report import render, write_private
from doublure.report.page import show_name, show_text


def test_a_name_that_the_context_lacks_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render("card.html.j2", {"title": "x"})


def test_shown_names_are_short_and_visible():
    assert show_name("x" * 100) == "x" * 47 + "…"
    assert show_name("a\u202eb\nc") == r"a\u202eb\nc"


def test_visible_sentences_keep_their_length_and_lose_their_tricks():
    assert show_text("x" * 500) == "x" * 500
    assert show_text("98\u00a0% of\nrows \u200b\u2066.") == "98\u00a0% of rows \\u200b\\u2066."


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        write_private(tmp_path / "no" / "page.html", "x")


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_private(path, "old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_private(path, "new")
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["page.html"]
