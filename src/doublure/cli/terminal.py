"""Terminal output: one line an error, progress with an estimate, one JSON object on request."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

from doublure.errors import (
    DataWarning,
    DoublureError,
    GateFailed,
    InputError,
    Interrupted,
    PrivacyWarning,
    SettingError,
    advice_of,
    defect_place,
)
from doublure.support.extras import missing_torch
from doublure.support.guessing import nearest_name
from doublure.support.progress import followed, is_off
from doublure.support.stopping import signals_ignored

if TYPE_CHECKING:
    from rich.console import Console

_INTERNAL = 1
_GROUPS = frozenset({"schema", "budget", "datasets", "public", "label", "keys"})
_BY_USER = Interrupted("stopped by the user")


@dataclass(frozen=True, kw_only=True)
class VerbResult:
    """The result of a verb: data for ``--json``, text for a person, and a failed gate if a check said no.

    Lines to paste keep their length in a terminal; comments at the margin are folded. A failed gate ends the command
    with its exit code, after the text; with ``--json`` the gate is the one object.
    """

    data: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    gate: GateFailed | None = None
    to_paste: bool = False


def ask_in_terminal(question: str) -> str | None:
    """Return the next line of stdin, asked for on stderr; None at its end."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


def say_in_terminal(text: str) -> None:
    """Write a line to stderr, beside the questions."""
    sys.stderr.write(f"{text}\n")


def console(*, stderr: bool = False, to_paste: bool = False) -> Console:
    """Return a terminal that respects ``NO_COLOR`` and never interprets markup in its input.

    Args:
        stderr: Whether it is stderr and not stdout.
        to_paste: Whether lines that are no comment at the margin are left as they are.
    """
    from rich.console import Console

    class FoldingConsole(Console):
        def print(self, *shown: Any, **how: Any) -> None:
            if self.is_terminal:
                shown = tuple(
                    folded(each, self.width, to_paste=to_paste) if isinstance(each, str) else each for each in shown
                )
            super().print(*shown, **how)

        def on_broken_pipe(self) -> None:
            raise  # rich would end the process here, with an exit code that means something else

    return FoldingConsole(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def folded(text: str, width: int, *, to_paste: bool = False) -> str:
    """Return a text whose long lines are broken between words, where a terminal would break within them.

    Continuations are indented by two more; those of a comment are comments again, so that YAML stays YAML. A word that
    is longer than a line stays whole: it may be a path.

    Example:
        >>> print(folded("  one two three", 9))
          one two
            three
    """
    return "\n".join(
        line if len(line) <= width or (to_paste and not line.startswith("# ")) else _folded(line, width)
        for line in text.split("\n")
    )


def _folded(line: str, width: int) -> str:
    bare = line.lstrip(" ")
    room = line[: len(line) - len(bare)]
    mark = "# " if bare.startswith("# ") else ""
    wrapped = textwrap.wrap(
        bare.removeprefix(mark),
        width=width,
        initial_indent=room + mark,
        subsequent_indent=f"{room}{mark}  ",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    return "\n".join(wrapped)


_QUIET = ("-q", "--quiet")
_quiet = False
"""Whether the running command prints errors alone."""


@contextlib.contextmanager
def _quietly(words: list[str]) -> Iterator[list[str]]:
    """Yield the words without ``-q``, and stay quiet until the command is done."""
    global _quiet
    before, _quiet = _quiet, any(word in _QUIET for word in words)
    try:
        yield [word for word in words if word not in _QUIET]
    finally:
        _quiet = before


@contextlib.contextmanager
def on_stderr() -> Iterator[None]:
    """Ignore errors of writing to stderr: its messages decide nothing."""
    try:
        yield
    except (OSError, ValueError):  # full or closed
        _drop(sys.stderr)


def run_guarded(app: Callable[..., Any], arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code; no error shows a traceback."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    while given[:1] == ["--json"]:  # before the verb it means the same as after it
        given = given[1:]
    command = " ".join(_words(given))
    _speak_any_encoding()
    try:
        from doublure.cli.configuration import with_config

        words = with_config(given)
        as_json, command = as_json or "--json" in words, " ".join(_words(words))
        if as_json and words and "--json" not in words:
            words.append("--json")
        with _quietly(words) as words, _termination_interrupts(), _warnings_in_a_line():
            outcome = app(args=words, prog_name="doublure", standalone_mode=False)
            if outcome == Interrupted.exit_code:  # newer typers turn a KeyboardInterrupt into this
                return _report(_BY_USER, command, as_json)
            if isinstance(outcome, int):  # --help and --version end with an exit code
                return outcome
            said = outcome if isinstance(outcome, VerbResult) else VerbResult()
            if said.gate is None or not as_json:
                _tell(said, command, as_json)
        return 0 if said.gate is None else _report(said.gate, command, as_json)
    except DoublureError as error:
        return _report(_advised(error, error), command, as_json)
    except KeyboardInterrupt:
        return _report(_BY_USER, command, as_json)
    except BrokenPipeError:
        _drop(sys.stdout)
        return 0
    except OSError as error:
        as_json = not _stdout_is_full() and as_json
        reason = (error.strerror or "failed").lower()
        full = error.errno == errno.ENOSPC
        remedy = "free some space" if full else "check the path and its permissions"
        return _report(_advised(InputError(reason, field=error.filename, remedy=remedy), error), command, as_json)
    except MemoryError as error:
        ran_out = InputError("ran out of memory", remedy="use smaller lots or a larger machine")
        return _report(_advised(ran_out, error), command, as_json)
    except Exception as error:
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "torch":
            return _report(missing_torch(command), command, as_json)
        return _unforeseen(error, command, as_json)


@contextlib.contextmanager
def _termination_interrupts() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: with one line, and with nothing half-written left behind."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def _warnings_in_a_line() -> Iterator[None]:
    """Print a warning about a guarantee or data as one line, without the source file that Python would name."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, (DataWarning, PrivacyWarning)):
            with on_stderr():
                console(stderr=True).print(f"doublure: warning: {message}")
        else:
            usual(message, category, *place, **more)

    usual, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _speak_any_encoding() -> None:
    """Let a terminal without ε show an escape in its place, and a closed one show nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - it stays open as long as the process
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if callable(reconfigure):
            reconfigure(errors="backslashreplace")


def _drop(stream: TextIO) -> None:
    """Discard pending output, so that the interpreter can end without an error."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _stdout_is_full() -> bool:
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _drop(sys.stdout)
        return True
    return False


def _write_object(body: dict[str, Any]) -> None:
    plain = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(body, ensure_ascii=plain, allow_nan=False) + "\n")
    sys.stdout.flush()


def _words(given: list[str]) -> list[str]:
    """Return the verb, and the second word of verbs that have one."""
    words = [word for word in given if not word.startswith("-")]
    return words[: 2 if words and words[0] in _GROUPS else 1]


def _tell(outcome: VerbResult, command: str, as_json: bool) -> None:
    if as_json:
        _write_object({"ok": True, "command": command, "result": outcome.data})
    elif outcome.text and not _quiet:
        console(to_paste=outcome.to_paste).print(outcome.text)


def _report(error: DoublureError, command: str, as_json: bool) -> int:
    with signals_ignored():  # a second signal must not cut off the report of the first
        return _reported(error, command, as_json)


def _reported(error: DoublureError, command: str, as_json: bool) -> int:
    if as_json:
        facts = {"code": error.code, "field": error.field, "message": error.message, "remedy": error.remedy}
        try:
            _write_object({"ok": False, "command": command, "error": facts})
        except OSError:
            as_json = not _stdout_is_full()
    if not as_json:
        with on_stderr():
            console(stderr=True).print(f"doublure: {error}", style="bold red")
    return error.exit_code


def _unforeseen(error: Exception, command: str, as_json: bool) -> int:
    """Report a usage error of the command line, or a defect, whose message may hold private values and is left out."""
    if type(error).__name__ == "NoArgsIsHelpError" and not as_json:
        with on_stderr():
            sys.stderr.write(f"{error}\n")
        return SettingError.exit_code
    if callable(getattr(error, "format_message", None)):
        return _report(_usage(error), command, as_json)
    if type(error).__name__ == "Exit":
        return int(getattr(error, "exit_code", 1))
    if type(error).__name__ == "Abort":  # click turns a KeyboardInterrupt into this
        return _report(_BY_USER, command, as_json)
    if os.environ.get("DOUBLURE_DEBUG"):
        raise error
    place = defect_place(error)
    defect = DoublureError(
        f"a defect of doublure: {type(error).__name__} at {place}", remedy="set DOUBLURE_DEBUG=1 to see more; report it"
    )
    _report(_advised(defect, error), command, as_json)
    return _INTERNAL


def _advised(said: DoublureError, error: BaseException) -> DoublureError:
    """Return an error with the advice of another's notes."""
    said.remedy = "; ".join(filter(None, (said.remedy, advice_of(error)))) or None
    return said


def _usage(error: Any) -> SettingError:
    """Return a usage error of the command line in our own words, with its flag as the field."""
    kind, context = type(error).__name__, getattr(error, "ctx", None)
    names = getattr(getattr(error, "param", None), "opts", None) or ()
    field = getattr(error, "option_name", None) or max(names, key=len, default=None)
    if kind == "NoArgsIsHelpError" or field == "--json":  # every command takes --json, so the command is missing
        kind, field = "NoArgsIsHelpError", None
    said = str(error.message).strip().rstrip(".?")
    message = {
        "NoArgsIsHelpError": "a command is missing",
        "NoSuchOption": "is not an option of this command",
        "MissingParameter": "is missing",
    }.get(kind) or said[:1].lower() + said[1:]
    remedy = f"see {getattr(context, 'command_path', 'doublure')} --help"
    short = min(names, key=len, default="")
    if kind == "MissingParameter" and short.startswith("-") and short != field:
        message = f"is missing ({short} for short)"
    if kind == "MissingParameter" and str(field).lstrip("-") == "ledger":
        remedy = f"run.json of a fit says where its ledger is, and doublure budget init makes one; {remedy}"
    known = [name.lstrip("-") for name in getattr(error, "possibilities", None) or ()]
    if near := nearest_name(str(field).lstrip("-"), known):
        remedy = f"did you mean --{near}? {remedy}"
    if kind == "BadParameter" and _wants_a_number(error):
        message, remedy = "is not a number", f"write one such as 0.5 or 1e-6, with a decimal point; {remedy}"
    if said.startswith("Got unexpected extra argument") and "=" in said:
        remedy = f"a flag takes one KEY=VALUE: repeat it for each; {remedy}"
    return SettingError(message, field=field, remedy=remedy)


def _wants_a_number(error: Any) -> bool:
    """Whether a flag that takes a real number was given another word: older typers type it, newer ones ask pydantic."""
    if getattr(getattr(error.param, "type", None), "name", None) == "float":
        return True
    found = getattr(error.__cause__, "errors", None)
    return callable(found) and any(each["type"] == "float_parsing" for each in found())


def clock(seconds: float | None) -> str:
    """Return a time as hours, minutes and seconds; dashes where it is not known.

    Example:
        >>> clock(11.4), clock(4000), clock(None)
        ('0:00:11', '1:06:40', '-:--:--')
    """
    return "-:--:--" if seconds is None else str(timedelta(seconds=int(seconds)))


class TerminalProgress:
    """Stages and bars on stderr; plain lines where stderr is no terminal; and a file that another process follows."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
        from rich.table import Column
        from rich.text import Text

        class ElapsedColumn(ProgressColumn):
            def render(self, task: Task) -> Text:
                elapsed = task.finished_time if task.finished else task.elapsed
                left = "" if not task.fields["counted"] else f", left {clock(task.time_remaining)}"
                return Text(f"elapsed {clock(elapsed)}{left}")

        class CountColumn(MofNCompleteColumn):
            def render(self, task: Task) -> Text:
                return Text() if not task.fields["counted"] else super().render(task)

        self._console = console(stderr=True)
        # Leave room for the ^C of a terminal: on a full line it would begin another, and the bars would be drawn twice.
        self._console.width = max(1, self._console.width - len("^C") - 1)
        self._silent = _quiet or is_off()
        self._live = self._console.is_terminal and not self._silent
        self._bars = Progress(
            TextColumn("  {task.description:<24}"),
            BarColumn(bar_width=32),
            CountColumn(table_column=Column(no_wrap=True)),
            ElapsedColumn(table_column=Column(no_wrap=True)),
            console=self._console,
            transient=False,
        )
        self._file = followed()
        self._task: Any = None
        self._name = ""
        self._total: int | None = None
        self._began = self._said = time.monotonic()

    def __enter__(self) -> Self:
        with on_stderr():
            if self._live:
                self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        with on_stderr():
            self._finish()
            if self._live:
                self._bars.stop()

    def tell(self, lines: Iterable[str]) -> None:
        """Print lines before the first stage, whether or not stages are shown."""
        with on_stderr():
            for line in () if _quiet else lines:
                self._console.print(f"  {line}")

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin a stage."""
        self._finish()
        if self._file is not None:
            self._file.stage(name, total)
        self._name, self._total = name, total
        self._began = self._said = time.monotonic()
        with on_stderr():
            if self._live:
                self._task = self._bars.add_task(name, total=total or None, counted=bool(total))
            elif not self._silent:
                self._console.print(f"  {name}", style="dim")

    def at(self, done: int) -> None:
        """Show how far the stage is."""
        if self._file is not None:
            self._file.at(done)
        if self._task is not None:
            with on_stderr():
                self._bars.update(self._task, completed=done)
        elif self._total and not self._silent and time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            left = (self._said - self._began) * (self._total - done) / max(1, done)
            with on_stderr():
                times = f"elapsed {clock(self._said - self._began)}, left {clock(left)}"
                self._console.print(f"  {self._name}: {done} of {self._total}, {times}", style="dim")

    def _finish(self) -> None:
        if self._task is not None:
            if not self._total:
                self._bars.update(self._task, total=1, completed=1)
            self._bars.stop_task(self._task)
            self._task = None


__all__ = ["TerminalProgress", "VerbResult", "console", "run_guarded"]
