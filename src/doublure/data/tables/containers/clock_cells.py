"""Times of day and spans of typed containers, as the text that columns of both types read."""

from __future__ import annotations


def clock_text(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds, to the thousandth.

    Example:
        >>> clock_text(27_015.0), clock_text(-129_600.5)
        ('7:30:15', '-36:00:00.500')
    """
    minutes, rest = divmod(round(abs(seconds) * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    second, thousandths = divmod(rest, 1000)
    fraction = f".{thousandths:03}" if thousandths else ""
    return f"{'-' if seconds < 0 else ''}{hours}:{minute:02}:{second:02}{fraction}"
