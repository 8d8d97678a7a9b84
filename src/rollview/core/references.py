"""Settings that refer to a secret instead of holding it.

Law: ``env:NAME`` and ``file:PATH`` are kept and shown as they are; what they refer to is read when it is used, and is
in no value that is stored or printed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rollview.errors import UsageError

_WORDS = r"password|passwd|passphrase|secret|token|credentials?|key[._-]?pem|jaas[._-]?config"
_KEYS = r"(?:access|account|api|encryption|private|secret|shared)[._-]?key"
_AZURE = r"(?:\.[\w-]+\.(?:blob|dfs)\.core\.[\w.-]+)?"
_SECRET_NAME = re.compile(rf"(?:{_WORDS}|{_KEYS}){_AZURE}$", re.IGNORECASE)
_ASSIGNED = re.compile(rf"(?<![/\w.-])[\w.-]*(?:{_WORDS}|{_KEYS}|pwd)\s*=", re.IGNORECASE)
# Without a host there is no password: 'sqlite:///a:b@c' is a path.
_IN_URL = re.compile(r"\w[\w+.-]*://(?!/)[^@]*:.*@", re.DOTALL)
_PASSWORD = re.compile(r"(://[^\s\"'@/:]*:)[^\s\"']*@")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_PLAIN = ("", "true", "false")

_variables: set[str] = set()


class Secret(str):
    """What a reference refers to. It is text like any other, but does not show itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def note_variables(*texts: str) -> None:
    """Remember the variables that these texts refer to, so that no process that is started inherits them."""
    for text in texts:
        kind, _, target = text.partition(":")
        if kind == "env" and _VARIABLE.fullmatch(target) is not None:
            _variables.add(target)


def secret_variables() -> tuple[str, ...]:
    """The variables of the environment that are known to hold secrets."""
    return tuple(sorted(_variables))


def names_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def holds_secret(text: str) -> bool:
    """Whether a text that is no reference has a password or its like in it, however it is spelled."""
    return not is_reference(text) and (_IN_URL.search(text) is not None or _ASSIGNED.search(text) is not None)


def masked(text: str) -> str:
    """What is printed of a text that a user typed: an address in the wrong place may have its password in it."""
    return _PASSWORD.sub(r"\1***@", text)


def is_literal_secret(name: str, value: str) -> bool:
    """Whether a setting holds the secret itself rather than a reference to it."""
    if is_reference(value) or value.lower() in _PLAIN:
        return False
    return names_secret(name) or holds_secret(value)


def is_reference(text: str) -> bool:
    kind, _, target = text.partition(":")
    return kind == "env" or (kind == "file" and not target.startswith("//"))


def resolve(text: str, folder: Path, referring: str) -> str:
    """The text itself, or what it refers to: a ``Secret``. ``referring``: who does, for the message."""
    if not is_reference(text):
        return text
    note_variables(text)
    kind, _, target = text.partition(":")
    if kind == "file":
        if "://" in target or holds_secret(target):
            raise UsageError(f"Behind 'file:' {referring} has to name a file.", hint="Write file:PATH.")
        return _read(folder / Path(target).expanduser(), referring)
    # What is not a name may be the secret itself, written where its name belongs.
    if _VARIABLE.fullmatch(target) is None:
        raise UsageError(
            f"Behind 'env:' {referring} has to name a variable of the environment.",
            hint="Write for example env:DB_URL.",
        )
    if target not in os.environ:
        raise UsageError(f"The environment has no variable '{target}', which {referring} refers to.", variable=target)
    return Secret(os.environ[target])


def anchored(text: str, folder: Path) -> str:
    """The same reference, understood from anywhere."""
    kind, _, target = text.partition(":")
    return f"file:{(folder / Path(target).expanduser()).absolute()}" if is_reference(text) and kind == "file" else text


def _read(path: Path, referring: str) -> str:
    try:
        return Secret(path.read_text(encoding="utf-8").strip())
    except OSError as cause:
        reason = cause.strerror
        raise UsageError(f"Cannot read '{path}', which {referring} refers to: {reason}.", file=str(path)) from None
    except ValueError:
        raise UsageError(f"The file that {referring} refers to is not UTF-8 text.") from None
