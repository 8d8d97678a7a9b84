"""Bytes that others might send: real ones, changed a little."""

from __future__ import annotations

import random

_WORDS = (b"", b"\x00", b"\xff" * 4, b"\x7f\xff\xff\xff", b"null", b"NaN", b"-1", b"1e999999999999999999", b"9" * 5_000)
_MARKS = b"{}[],:\"'\n\\\x00\xff-+.0123456789eE"


def changed(chance: random.Random, data: bytes) -> bytes:
    """One to three small changes."""
    for _ in range(chance.randint(1, 3)):
        data = _CHANGES[chance.randrange(len(_CHANGES))](chance, data)
    return data


def _place(chance: random.Random, data: bytes) -> int:
    return chance.randrange(len(data) + 1)


def _flip(chance: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def _mark(chance: random.Random, data: bytes) -> bytes:
    if not data:
        return data
    at = chance.randrange(len(data))
    return data[:at] + bytes([chance.choice(_MARKS)]) + data[at + 1 :]


def _insert(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + chance.choice(_WORDS) + data[at:]


def _cut(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + data[at + chance.randint(1, 8) :]


def _end(chance: random.Random, data: bytes) -> bytes:
    return data[: _place(chance, data)]


def _repeat(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + data[max(0, at - chance.randint(1, 30)) : at] + data[at:]


def _noise(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + chance.randbytes(chance.randint(1, 6)) + data[at:]


_CHANGES = (_flip, _flip, _mark, _mark, _insert, _cut, _end, _repeat, _noise)
