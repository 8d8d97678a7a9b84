"""Which column of a table each column of an announced layout is.

Law: a column's number is never used again in its table, and a layout lists columns in the order of their numbers. What
was there before a layout and is there now was there then, too; whatever else is possible is tried. Where all
possibilities agree, the column is known; names and types decide nothing, except where the catalog proves that a column
was not described anew in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollview.sources.postgres.layout import PgTable
from rollview.sources.postgres.messages import MessageColumn

Facts = Mapping[str, Any]
"""What is remembered of a table: its columns by name with type, modifier, number and version; ``last``: the highest
number that was in use by then; ``maybe``: numbers of which nobody can tell whether they were."""


@dataclass(frozen=True, slots=True)
class Told:
    """A column of a layout. ``numbers``: which it may be; one, if that is known."""

    name: str
    type_oid: int
    modifier: int
    numbers: frozenset[int]

    @property
    def number(self) -> int | None:
        return next(iter(self.numbers)) if len(self.numbers) == 1 else None

    def to_json(self) -> list[Any]:
        return [self.name, self.type_oid, self.modifier, sorted(self.numbers)]

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Told:
        name, type_oid, modifier, numbers = data
        return cls(name, type_oid, modifier, frozenset(numbers))


Layout = tuple[Told, ...]


def facts(table: PgTable) -> dict[str, Any]:
    columns = {c.name: [c.type_oid, c.modifier, c.number, c.version] for c in table.columns}
    generated = [c.number for c in table.columns if c.generated]
    return {"oid": table.oid, "file": table.file, "columns": columns, "generated": generated, "last": table.last}


def present_layout(table: PgTable) -> Layout:
    """As rows are announced that are written now."""
    plain = (column for column in table.columns if not column.generated)
    return tuple(Told(c.name, c.type_oid, c.modifier, frozenset({c.number})) for c in plain)


def recorded_layout(recorded: Facts) -> Layout:
    """As rows were announced when it was recorded."""
    hidden = recorded.get("generated", ())
    columns = sorted((number, name, oid, modifier) for name, (oid, modifier, number, _) in recorded["columns"].items())
    shown = (column for column in columns if column[0] not in hidden)
    return tuple(Told(name, oid, modifier, frozenset({number})) for number, name, oid, modifier in shown)


def learned(recorded: Facts, layout: Layout) -> dict[str, Any]:
    """What is remembered once a layout was met. A column that was described anew has no version before it is asked."""
    versions = {(name, *facts[:3]): facts[3] for name, facts in recorded["columns"].items()}
    known = [(one, number) for one in layout if (number := one.number) is not None]
    columns = {
        one.name: [one.type_oid, one.modifier, number, versions.get((one.name, one.type_oid, one.modifier, number))]
        for one, number in known
    }
    maybe = sorted({number for one in layout if one.number is None for number in one.numbers})
    last = max([_last(recorded), *(number for _, number in known)])
    return {**recorded, "columns": columns, "last": last, "maybe": maybe, "generated": []}


def aligned(message: Sequence[MessageColumn], before: Facts, now: Facts) -> Layout:
    """``before``: what was remembered when the layout was announced; ``now``: what the catalog says after that."""
    possible: list[set[int]] = [set() for _ in message]
    described = {column[2]: (name, *column[:2]) for name, column in before["columns"].items()}
    versions = {column[2]: column[3] for column in before["columns"].values()}
    same = {c[2] for c in now["columns"].values() if c[3] is not None and versions.get(c[2]) == c[3]}
    pinned = {number: described[number] for number in same}
    for top in range(_last(before), max(_last(before), _last(now)) + 1):
        for place, number in _pairs(message, tuple(_candidates(before, now, top)), pinned):
            possible[place].add(number)
    return tuple(
        Told(c.name, c.type_oid, c.modifier, frozenset(numbers)) for c, numbers in zip(message, possible, strict=True)
    )


def _last(recorded: Facts) -> int:
    return int(recorded.get("last") or max((column[2] for column in recorded["columns"].values()), default=0))


def _candidates(before: Facts, now: Facts, top: int) -> Iterator[tuple[int, bool]]:
    """Numbers that a layout may have if ``top`` was the highest in use, and whether it must have them."""
    known, present = ({column[2] for column in one["columns"].values()} for one in (before, now))
    hidden, shown_later = set(now.get("generated", ())), set(before.get("generated", ()))
    maybe = set(before.get("maybe", ()))
    for number in range(1, top + 1):
        if number in hidden:
            continue
        if number in known:
            yield number, number in present and number not in shown_later
        elif number in maybe:
            yield number, False
        elif number > _last(before):
            yield number, number in present


def _pairs(
    message: Sequence[MessageColumn], numbers: Sequence[tuple[int, bool]], pinned: Mapping[int, tuple[Any, ...]]
) -> Iterable[tuple[int, int]]:
    """Every place of the message with every number that it has in some way of giving all of them numbers."""
    names = {name for name, *_ in pinned.values()}
    told = [(column.name, column.type_oid, column.modifier) for column in message]

    def fits(item: int, place: int) -> bool:
        number = numbers[item][0]
        return told[place] == pinned[number] if number in pinned else told[place][0] not in names

    items, places = len(numbers), len(message)
    # ends[i][p]: the numbers from i on can be given to the places from p on.
    ends = [[False] * (places + 1) for _ in range(items + 1)]
    ends[items][places] = True
    for i in range(items - 1, -1, -1):
        for p in range(places, -1, -1):
            skipped = not numbers[i][1] and ends[i + 1][p]
            ends[i][p] = skipped or (p < places and ends[i + 1][p + 1] and fits(i, p))
    found: list[tuple[int, int]] = []
    reached = {0} if ends[0][0] else set()
    for i in range(items):
        further: set[int] = set()
        for p in reached:
            if not numbers[i][1] and ends[i + 1][p]:
                further.add(p)
            if p < places and ends[i + 1][p + 1] and fits(i, p):
                found.append((p, numbers[i][0]))
                further.add(p + 1)
        reached = further
    return found
