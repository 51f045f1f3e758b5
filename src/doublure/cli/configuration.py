"""``--config run.yaml``: every flag can stand in a file; a flag on the command line wins.

Example file::

    method: dpgan
    epsilon: 3.0
    delta: 1e-5
    set: {steps: 500, lot_size: 4096}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from doublure.errors import SettingError

_FLAG = "--config"
_SHORT = {"-o": "--out", "-n": "--rows"}


def with_config(arguments: list[str]) -> list[str]:
    """Return the arguments, with those of the ``--config`` file added.

    Raises:
        SettingError: The file is not a mapping of flags.
    """
    places = [i for i, word in enumerate(arguments) if word == _FLAG or word.startswith(f"{_FLAG}=")]
    if not places:
        return arguments
    if len(places) > 1:
        raise SettingError("is given twice", field=_FLAG, remedy="put all flags in one file")
    place = places[0]
    if arguments[place] == _FLAG:
        if place + 1 == len(arguments):
            raise SettingError("needs a file", field=_FLAG, remedy="write --config run.yaml")
        name, rest = arguments[place + 1], arguments[:place] + arguments[place + 2 :]
    else:
        name, rest = arguments[place].partition("=")[2], arguments[:place] + arguments[place + 1 :]
    return rest + _as_flags(name, given=rest)


def _as_flags(name: str, given: list[str]) -> list[str]:
    from doublure.errors import SchemaError
    from doublure.support import yaml12 as yaml_text

    try:
        data = yaml_text.load(Path(name), "config")
    except SchemaError as error:
        raise SettingError(error.message, field=name, remedy=error.remedy) from None
    if not isinstance(data, dict):
        raise SettingError("is not a mapping of flags", field=name, remedy="write lines such as epsilon: 1.0")
    taken = {word.partition("=")[0] for word in given} | {word[:2] for word in given if word[:2] in _SHORT}
    flags: list[str] = []
    for key, value in data.items():
        flag = _SHORT.get(f"-{key}", f"--{str(key).replace('_', '-')}")
        if flag == _FLAG:
            raise SettingError("cannot stand in a config file", field=flag, remedy="put all flags in one file")
        if flag not in taken and not any(_SHORT[short] == flag for short in taken & _SHORT.keys()):
            flags += _one(flag, value)
    return flags


def _one(flag: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    if isinstance(value, dict):
        return [f"{flag}={key}={_text(entry)}" for key, entry in value.items()]
    if isinstance(value, list):
        return [f"{flag}={_text(entry)}" for entry in value]
    return [f"{flag}={_text(value)}"]  # one word: a value may begin like a flag


def _text(value: Any) -> str:
    """Return a value as it is typed: nothing for a missing cell, commas between listed cells."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
