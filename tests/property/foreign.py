"""Bytes that others might send: real ones, changed a little.

Every parser that reads what others wrote is fed with such, 100,000 in all. Where a plain reading of the same bytes
exists, what is taken must be what that says.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rollview.core.schema import Schema
from rollview.sources.values import as_rows
from tests.sizes import times

SEEDS = Path(__file__).parent / "seeds"
INPUTS = {
    "pgoutput": 12_000,
    "debezium": 40_000,
    "json": 22_000,
    "csv": 15_000,
    "binlog": 7_000,
    "delta": 1_000,
    "yaml": 3_000,
}
PARTS = 4
SHARE = 10
"""``make test`` takes so small a part of the inputs, ``make faults`` all."""


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


def parts(kind: str) -> Any:
    return pytest.mark.parametrize("part", range(PARTS), ids=lambda part: f"{kind}-{part}")


def chances(kind: str, part: int) -> Iterator[random.Random]:
    for number in range(part, times(INPUTS[kind] // SHARE, INPUTS[kind]), PARTS):
        yield random.Random(f"{kind} {number}")


@cache
def seed(name: str) -> Any:
    return json.loads((SEEDS / f"{name}.json").read_text())


def schema_of(told: Any) -> Schema:
    return Schema.from_json(told)


def shown(value: Any) -> str:
    return repr(value.astimezone(None) if isinstance(value, datetime) and value.tzinfo else value)


def bag(rows: Any) -> Counter[tuple[str, ...]]:
    return Counter(tuple(shown(value) for value in row) for row in as_rows(rows))
