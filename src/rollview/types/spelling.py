"""Spark's spelling of a type, taken apart: ``struct<a:decimal(3,1),`b c`:array<int>>``.

Law: either the whole text is understood or a ValueError says that it is not; nothing is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

_Item = TypeVar("_Item")

_TOKEN = re.compile(r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<mark>[<>():,])|(?P<word>[^`<>():,]*[^`<>():,\s]))\s*")


@dataclass(frozen=True, slots=True)
class Spelled:
    word: str
    numbers: tuple[int, ...] = ()
    parts: tuple[tuple[str | None, Spelled], ...] = ()
    """What is inside ``<>``, each with its name if it has one."""


def parse(text: str) -> Spelled:
    tokens = _Tokens(text)
    found = _type(tokens)
    tokens.take("")
    return found


class _Tokens:
    def __init__(self, text: str) -> None:
        self._left: list[str] = []
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None:
                raise ValueError(f"not a type: {text!r}")
            self._left.append(found[found.lastgroup or 0])
            place = found.end()
        self._left.append("")
        self._left.reverse()

    @property
    def next(self) -> str:
        return self._left[-1]

    @property
    def after_next(self) -> str:
        return self._left[-2] if len(self._left) > 1 else ""

    def take(self, *expected: str) -> str:
        if expected and self.next not in expected:
            raise ValueError(f"{self.next!r} where {' or '.join(map(repr, expected))} should be")
        return self._left.pop() if len(self._left) > 1 else ""


def _type(tokens: _Tokens) -> Spelled:
    word = tokens.take().lower()
    if tokens.next == "(":
        return Spelled(word, numbers=tuple(int(text) for text in _listed(tokens, "(", ")", _Tokens.take)))
    if tokens.next == "<":
        return Spelled(word, parts=tuple(_listed(tokens, "<", ">", _part)))
    return Spelled(word)


def _listed(tokens: _Tokens, first: str, last: str, item: Callable[[_Tokens], _Item]) -> Iterator[_Item]:
    tokens.take(first)
    yield item(tokens)
    while tokens.take(",", last) == ",":
        yield item(tokens)


def _part(tokens: _Tokens) -> tuple[str | None, Spelled]:
    if tokens.after_next != ":":
        return None, _type(tokens)
    name = tokens.take()
    tokens.take(":")
    return _unquoted(name), _type(tokens)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


def widens(old: str, new: str) -> bool:
    """Whether every value of the one type is the same value of the other, and is read as such from a file."""
    before, after = parse(old), parse(new)
    if before.word in _WHOLE_NUMBERS and after.word in _WHOLE_NUMBERS:
        return _WHOLE_NUMBERS.index(before.word) < _WHOLE_NUMBERS.index(after.word)
    match before, after:
        case Spelled("float"), Spelled("double"):
            return True
        case Spelled("decimal", numbers=(precision, scale)), Spelled("decimal", numbers=(wider, finer)):
            return finer >= scale and wider - finer >= precision - scale
        case Spelled("varchar", numbers=(length,)), Spelled("varchar", numbers=(longer,)):
            return longer >= length
        case Spelled("varchar"), Spelled("string"):
            return True
    return False
