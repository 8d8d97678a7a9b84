"""Sets of MySQL's global transaction ids.

Law: a place in the log is the set of the transactions up to there. Each transaction adds one id, so of two places in
one log the later one is the larger set, even where the numbers of the ids do not grow along the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

NOWHERE = "-"
"""Before the first transaction."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Range = tuple[int, int]
"""Both ends are in it."""


class NotUnderstoodError(ValueError):
    """An id that is not a server's identity and a number, such as one with a tag."""

    def __init__(self, member: str) -> None:
        super().__init__(f"transaction ids like {member} are not understood, as those with a tag")


@dataclass(frozen=True, slots=True)
class GtidSet:
    """Ranges of each server: ascending, and with a gap after each."""

    ranges: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> GtidSet:
        members = [member.strip() for member in text.split(",")] if text.strip() not in ("", NOWHERE) else []
        found: dict[str, list[Range]] = {}
        for member in members:
            server, *parts = member.lower().split(":")
            if not _UUID.fullmatch(server) or not parts:
                raise NotUnderstoodError(member)
            found.setdefault(server, []).extend(_range(part, member) for part in parts)
        return cls({server: _joined(ranges) for server, ranges in sorted(found.items())})

    def __str__(self) -> str:
        members = (":".join([server, *map(_told, ranges)]) for server, ranges in self.ranges.items())
        return ",".join(members) or NOWHERE

    def __len__(self) -> int:
        return sum(last - first + 1 for ranges in self.ranges.values() for first, last in ranges)

    def __or__(self, other: GtidSet) -> GtidSet:
        servers = sorted({*self.ranges, *other.ranges})
        return GtidSet({s: _joined([*self.ranges.get(s, ()), *other.ranges.get(s, ())]) for s in servers})

    def __ge__(self, other: GtidSet) -> bool:
        return (self | other).ranges == self.ranges

    def without(self, other: GtidSet) -> GtidSet:
        left = {server: tuple(_left(ranges, other.ranges.get(server, ()))) for server, ranges in self.ranges.items()}
        return GtidSet({server: ranges for server, ranges in left.items() if ranges})


def _range(text: str, member: str) -> Range:
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise NotUnderstoodError(member)
    return int(first), int(last or first)


def _joined(ranges: list[Range]) -> tuple[Range, ...]:
    joined: list[Range] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    return tuple(joined)


def _left(ranges: tuple[Range, ...], taken: tuple[Range, ...]) -> Iterator[Range]:
    for first, last in ranges:
        for start, end in taken:
            if start <= last and end >= first:
                if first < start:
                    yield first, start - 1
                first = end + 1
        if first <= last:
            yield first, last


def _told(range_: Range) -> str:
    first, last = range_
    return str(first) if first == last else f"{first}-{last}"
