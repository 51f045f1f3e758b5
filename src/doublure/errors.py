"""The tree of all errors, with their exit codes.

::

    DoublureError
    ├── InputError                 exit 2   the user can fix it
    │   ├── SchemaError                     the schema file
    │   ├── DataError                       the private (or public) data
    │   │   └── FaultyRecords                   single records break a rule; an internal list can name them
    │   ├── SettingError                    a flag, a setting, an argument
    │   ├── RunFolderError                  a run or bundle on disk
    │   │   └── LostRun                     it cannot be resumed
    │   ├── LedgerError                     the ledger file
    │   └── MissingExtra                    a library of an optional extra is missing
    ├── BudgetRefused              exit 3   the cap would be passed; no data was opened
    ├── GateFailed                 exit 4   a check said no: verify, audit
    │   └── CeilingPassed                   ε_μ came out above its ceiling; the run is kept under its worst case
    └── Interrupted                exit 130 stopped by the user; what was spent stays spent
        ├── RankLost                        one of several processes is gone, and the run was stopped
        └── OwnerLost                       an owner of records failed, and the run was ended, unpublished

Every message is one line that names the field and the remedy, and never a private value (pitfalls.md, rule 16).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import partial
from pathlib import PurePath
from typing import ClassVar, NamedTuple

_LONGEST_NAME = 80


def printable(name: object) -> str:
    r"""Return a public name (a column, a file, a key) fit for one line of a terminal.

    Control, bidirectional and other invisible characters are escaped, so that a hostile column name can neither
    move the cursor nor reverse the text around it; long names are shortened, paths at their beginning.

    Example:
        >>> printable("age\u202e")
        'age\\u202e'
    """
    text = escaped(str(name))
    if len(text) <= _LONGEST_NAME:
        return text
    return "…" + text[1 - _LONGEST_NAME :] if isinstance(name, PurePath) else text[: _LONGEST_NAME - 1] + "…"


def counted(number: int, word: str) -> str:
    """Return a number and its word, in the plural where there are several or none.

    Example:
        >>> counted(1, "run"), counted(1200, "noisy step"), counted(0, "entry"), counted(2, "real series")
        ('1 run', '1,200 noisy steps', '0 entries', '2 real series')
    """
    if number != 1 and not word.endswith("series"):
        word = re.sub("([^aeiou])y$", r"\1ie", word)
        word += "es" if re.search("(s|sh|ch)$", word) else "s"
    return f"{number:,} {word}"


def escaped(text: str) -> str:
    """Return a text with every control, bidirectional and other invisible character escaped."""
    if text.isprintable():  # the same characters, and quickly
        return text
    return "".join(
        char if unicodedata.category(char)[0] not in "CZ" or char == " " else char.encode("unicode_escape").decode()
        for char in text
    )


class DoublureError(Exception):
    """The root of the tree.

    Args:
        message: What is wrong, without a private value and without a full stop.
        field: The flag, key, column or file that is wrong.
        remedy: What to do about it.

    Example:
        >>> try:
        ...     db.plan(schema, epsilon=-1.0, delta=1e-5)
        ... except db.errors.DoublureError as error:
        ...     print(error.code, error.exit_code, error, sep=" | ")
        setting | 2 | epsilon: must be a number above 0; give a number such as 1.0
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, field: object | None = None, remedy: str | None = None) -> None:
        self.message = " ".join(message.split())
        self.field = None if field is None else printable(field)
        self.remedy = None if remedy is None else " ".join(remedy.split())
        super().__init__(self.message)

    def __str__(self) -> str:
        head = self.message if self.field is None else f"{self.field}: {self.message}"
        return head if self.remedy is None else f"{head}; {self.remedy}"


class Advice(str):
    """A note on any error with advice and no private value, which may be shown without the text of the error.

    Example:
        >>> error = ValueError("from another library")
        >>> error.add_note(Advice("go on with --resume"))
        >>> advice_of(error)
        'go on with --resume'
    """

    __slots__ = ()


def advice_of(error: BaseException) -> str | None:
    """Return the advice in an error's notes, if there is any."""
    return "; ".join(note for note in getattr(error, "__notes__", ()) if isinstance(note, Advice)) or None


def defect_place(error: BaseException) -> str:
    """Return the file and line of this package where an error arose: all of a defect that may be shown."""
    place, traceback = "an unknown place", error.__traceback__
    while traceback is not None:
        file = PurePath(traceback.tb_frame.f_code.co_filename)
        if PurePath(__file__).parent in file.parents:
            place = f"{file.name}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


class InputError(DoublureError):
    """Something the user gave is wrong and can be fixed."""

    code = "input"


class SchemaError(InputError):
    """The schema is incomplete or contradicts itself."""

    code = "schema"


class DataError(InputError):
    """The data does not fit the schema, or cannot be read."""

    code = "data"


class Fault(NamedTuple):
    """A record that breaks a rule. Private.

    Attributes:
        number: Its place in the data, from 1; None for something that is no record, such as a folder.
        name: The name of its file; empty where it has none.
        rule: The rule that it breaks.
    """

    number: int | None
    name: str
    rule: str


class FaultyRecords(DataError):
    """Single records break a rule. The message counts them and names none; an internal list may.

    Args:
        message: What is wrong, without a private value.
        field: The file that is wrong.
        remedy: What to do about it.
        faults: The records, with the rules that they break. Private.
    """

    def __init__(self, message: str, *, field: object, remedy: str, faults: Iterable[Fault]) -> None:
        super().__init__(message, field=field, remedy=remedy)
        self.faults = tuple(faults)

    def __reduce__(self) -> tuple[partial[FaultyRecords], tuple[str]]:
        told = {"field": self.field, "remedy": self.remedy or "", "faults": self.faults}
        return partial(FaultyRecords, **told), (self.message,)  # type: ignore[arg-type]


class SettingError(InputError):
    """A flag, a setting or an argument is out of its range."""

    code = "setting"


class BeyondPld(SettingError):
    """Accountant ``pld`` cannot compose these events at this δ; ``rdp`` may."""


class RunFolderError(InputError):
    """A run folder or a bundle is missing, damaged, or of another version."""

    code = "run_folder"


class LostRun(RunFolderError):
    """A run lost what it had bought when it was cut off, and cannot be resumed: its price covers a single draw."""


class LedgerError(InputError):
    """The ledger is missing, damaged, or on a file system that cannot keep it."""

    code = "ledger"


class MissingExtra(InputError):
    """A feature needs a library of an optional extra."""

    code = "extra"


class BudgetRefused(DoublureError):
    """The ledger's cap would be passed. No private record was opened."""

    code = "budget"
    exit_code = 3


class GateFailed(DoublureError):
    """A check said no."""

    code = "gate"
    exit_code = 4


class CeilingPassed(GateFailed):
    """ε_μ came out above the ceiling, or distances did not decide it: the run is kept under its worst case.

    Args:
        synthesizer: The synthesizer, with the guarantee that is left.
        field: The run folder, if there is one.
        remedy: What to do about it.
    """

    code = "ceiling"

    def __init__(self, synthesizer: object, *, field: object | None, remedy: str) -> None:
        why = "ε_μ came out above the ceiling, or distances did not decide it, so the claim is the worst case"
        super().__init__(why, field=field, remedy=remedy)
        self.synthesizer = synthesizer


class NotAsPriced(DoublureError):
    """Something else ran than was priced: the run ends before anything of it is given out."""

    code = "not_as_priced"
    exit_code = 4


class Interrupted(DoublureError):
    """The user stopped the run. What was spent stays spent, and the run can be resumed."""

    code = "interrupted"
    exit_code = 130


class RankLost(Interrupted):
    """One of several processes of a run is gone, so the run was stopped. It can be resumed."""


class OwnerLost(Interrupted):
    """An owner of records failed after the charge, so the run was ended, unpublished. It can be resumed."""


class DataWarning(UserWarning):
    """Data is read, perhaps in another way than its owner expects."""


class PrivacyWarning(UserWarning):
    """A guarantee is weaker than a reader might think; the message says how."""
