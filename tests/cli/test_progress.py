"""Progress on a terminal of the least usual width."""

from __future__ import annotations

import re

import pytest

from doublure.cli.terminal import TerminalProgress, clock


def test_both_times_are_named_and_a_line_has_room_for_an_interrupt(monkeypatch, capsys):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}.items():
        monkeypatch.setenv(name, value)
    with TerminalProgress() as progress:
        progress.stage("teach the generator", 12_000)
        progress.at(7_560)
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r" 7560/12000 elapsed 0:00:0\d, left [-0-9]:[-0-9]{2}:[-0-9]{2}", shown)
    assert progress._console.width == 77


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0, "0:00:00"), (558.9, "0:09:18"), (90_000, "1 day, 1:00:00"), (None, "-:--:--")]
)
def test_clock(seconds, said):
    assert clock(seconds) == said
