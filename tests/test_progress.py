"""Progress where nobody names a listener: a line where somebody sees it, and quiet elsewhere."""

from __future__ import annotations

import io
import itertools
import sys
from types import SimpleNamespace

import pytest

import doublure as db
from doublure.support import progress
from doublure.support.progress import ProgressLine, SilentProgress, listen


class Terminal(io.StringIO):
    """What a terminal gets to see."""

    def isatty(self):
        return True

    @property
    def lines(self):
        return [line.rstrip() for line in self.getvalue().replace("\n", "\r").split("\r") if line.strip()]


@pytest.fixture
def streams(monkeypatch):
    """Return the streams that the module sees; pytest puts its own in the place of those of ``sys``."""
    monkeypatch.delenv("DOUBLURE_PROGRESS", raising=False)
    seen = SimpleNamespace(stderr=Terminal(), stdout=Terminal(), modules=dict(sys.modules))
    seen.modules.pop("IPython", None)
    monkeypatch.setattr(progress, "sys", seen)
    return seen


@pytest.fixture
def terminal(streams):
    return streams.stderr


@pytest.fixture
def notebook(streams):
    shell = SimpleNamespace(kernel=object())
    streams.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)
    return streams.stdout


def test_a_terminal_shows_a_line_over_itself(terminal, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0)
    with listen(None, "fit") as listener:
        listener.stage("read")
        listener.stage("train", 200)
        for done in (0, 10, 100, 200):
            listener.at(done)
    assert terminal.lines == [
        "fit: read", "fit: train", "fit: train, 0 of 200", "fit: train, 10 of 200",
        "fit: train, 100 of 200, about 1 s left", "fit: train, 200 of 200", "fit: done in 1 s",
    ]  # fmt: skip
    assert terminal.getvalue().count("\n") == 1


def test_it_writes_four_times_a_second_at_most(terminal, monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(ticks) / 100))
    with listen(None, "fit") as listener:
        listener.stage("train", 10**6)
        for done in range(10_000):
            listener.at(done)
    took = next(ticks) / 100
    assert 3.5 * took < len(terminal.lines) <= 4 * took + 3


def test_what_stops_says_where(terminal):
    def work():
        with listen(None, "fit") as listener:
            listener.stage("train")
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        work()
    assert terminal.lines[-1] == "fit: stopped at: train"


def test_what_was_refused_before_it_began_says_nothing(terminal, small, tmp_path):
    with pytest.raises(db.errors.SettingError):
        db.fit(small.frame(), small.plan, ledger=small.book(tmp_path), resume=True)
    assert terminal.getvalue() == ""


def test_a_long_line_does_not_wrap(terminal):
    with listen(None, "fit") as listener:
        listener.stage("a stage " * 40)
    assert max(map(len, terminal.lines)) <= 78


def test_a_log_stays_quiet(streams):
    streams.stderr = io.StringIO()
    with listen(None, "fit") as listener:
        listener.stage("train")
        assert isinstance(listener, SilentProgress)
    assert streams.stderr.getvalue() == ""
    with listen(True, "fit") as listener:
        assert isinstance(listener, ProgressLine)


@pytest.mark.parametrize("said", ["0", "off", "No", " false "])
def test_the_environment_switches_it_off(terminal, monkeypatch, said):
    monkeypatch.setenv("DOUBLURE_PROGRESS", said)
    for asked in (None, True):
        with listen(asked, "fit") as listener:
            assert isinstance(listener, SilentProgress)


def test_an_argument_switches_it_off(terminal):
    with listen(False, "fit") as listener:
        listener.stage("train")
    assert terminal.getvalue() == ""


def test_a_listener_of_ones_own_is_handed_on(terminal):
    own = SilentProgress()
    with listen(own, "fit") as listener:
        assert listener is own
    assert terminal.getvalue() == ""


def test_a_notebook_shows_it_as_output_and_not_as_an_error(notebook, terminal):
    assert progress.in_notebook()
    with listen(None, "fit") as listener:
        listener.stage("train")
    assert notebook.lines == ["fit: train", "fit: done in 1 s"]
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("shell", [None, SimpleNamespace(), SimpleNamespace(kernel=None)])
def test_python_and_the_shell_of_ipython_are_no_notebook(streams, shell):
    streams.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)
    assert not progress.in_notebook()


def test_a_stream_that_is_closed_stops_no_work(terminal):
    with listen(None, "fit") as listener:
        listener.stage("read")
        terminal.close()
        listener.stage("train")


def test_fit_and_release_say_what_they_do_by_themselves(small, tmp_path, terminal):
    book = small.book(tmp_path)
    syn = db.fit(small.frame(), small.plan, ledger=book)
    assert {"fit: read the records", "fit: encode", "fit: save"} <= set(terminal.lines)
    assert terminal.lines[-1].startswith("fit: done in ")
    db.release(syn, tmp_path / "bundle", n=5)
    assert "release: draw data.csv" in terminal.lines
    written = terminal.getvalue()
    db.fit(small.frame(), small.plan, ledger=book, again=True, progress=False)
    assert terminal.getvalue() == written
