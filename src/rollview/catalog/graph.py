"""Who reads whom.

Law: the relations and what they read form no cycle, so every view has a place in the order of refresh.
"""

from __future__ import annotations

from collections.abc import Sequence

from rollview import errors
from rollview.catalog.values import Relation, Snapshot, folded


def reads_of(snapshot: Snapshot, name: str, depends_on: Sequence[str]) -> tuple[int, ...]:
    """The ids of what ``name`` is to read, each once, in the given order; refused if that leads back to ``name``."""
    for read in depends_on:
        way = _way(snapshot, read, name)
        if way is not None:
            raise _cycle((name, *way))
    return tuple(dict.fromkeys(snapshot.get(read).id for read in depends_on))


def users_of(snapshot: Snapshot, relation: Relation) -> tuple[str, ...]:
    """Views that read the relation, and tables whose foreign keys refer to it."""
    referring = (
        other.name
        for other in snapshot.tables()
        if other.id != relation.id
        and any(folded(key.table) == folded(relation.name) for key in other.constraints.checked.foreign_keys)
    )
    return tuple(reader.name for reader in snapshot.readers(relation.name)) + tuple(referring)


def check_not_read_before(snapshot: Snapshot, relation: Relation, doing: str = "drop") -> None:
    """Refuse where a view can be read at csns at which it was defined by the relation."""
    for view in snapshot.relations.values():
        ends = [
            after.csn
            for before, after in zip(view.versions, view.versions[1:], strict=False)
            if relation.name in before.depends_on
        ]
        if ends:
            raise errors.UsageError(
                f"Cannot {doing} {relation.kind} '{relation.name}': view '{view.name}' reads it by the definition "
                f"that it had before csn {max(ends)}.",
                hint=f"Give that up: rollview maintain --select {view.name} --prune-before {max(ends)}",
                view=view.name,
                csn=max(ends),
            )


def _way(snapshot: Snapshot, start: str, target: str) -> tuple[str, ...] | None:
    """The relations from ``start`` along what each reads to ``target``, or None."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {folded(start)}
    while ways:
        way = ways.pop()
        if folded(way[-1]) == folded(target):
            return way
        relation = snapshot.find(way[-1])
        ahead = [] if relation is None else [read for read in relation.depends_ever if folded(read) not in seen]
        seen.update(map(folded, ahead))
        ways += [(*way, read) for read in ahead]
    return None


def _cycle(way: tuple[str, ...]) -> errors.UsageError:
    return errors.UsageError(
        f"View '{way[0]}' would read itself: {' → '.join(way)}.",
        hint="A view may read tables and views, but none that reads it.",
        cycle=way,
    )
