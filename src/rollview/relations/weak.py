"""Views that publish how far each of their tables has come, and not one csn: ``'rollview.consistency' = 'weak'``.

Law: let f be the places of the tables of a view that is propagated table by table. Boxes never overlap and lie one
after another, so the extent and *all* rows of the delta, those beyond the mark as well, are V(R_1@f_1, …, R_n@f_n).
Each table is at a state that it had, but not all at one csn: the view has no csn, and whatever needs one is refused.
Up to the mark the delta is what it is without the property, so taking the property away loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rollview.catalog import Relation, Snapshot
from rollview.core.interval import Csn
from rollview.errors import UsageError
from rollview.relations.cadence import CONSISTENCY, PROPAGATE, WEAK
from rollview.relations.marks import high_water_mark
from rollview.relations.rolling import places_of, turns_in


def wants_weak(properties: Mapping[str, str]) -> bool:
    said = properties.get(CONSISTENCY)
    if said not in (None, WEAK):
        hint = f"Write '{CONSISTENCY}' = '{WEAK}', or leave it out: then a view is at one csn."
        raise UsageError(f"A view cannot be asked for consistency '{said}'.", hint=hint)
    return said is not None


def is_weak(view: Relation) -> bool:
    return view.definition is not None and view.definition.properties.get(CONSISTENCY) == WEAK


def check_weak(snapshot: Snapshot, name: str, properties: Mapping[str, str], *, subscribed: bool) -> None:
    """Refuse the property where something needs a csn of the view. ``subscribed``: somebody is sent its changes."""
    if not wants_weak(properties):
        return
    reason = next(_reasons(snapshot, name, properties, subscribed=subscribed), None)
    if reason is not None:
        raise UsageError(
            f"View '{name}' cannot be published weakly consistent: {reason}.",
            hint=f"Leave '{CONSISTENCY}' out: then it is published at one csn.",
            view=name,
        )


def _reasons(snapshot: Snapshot, name: str, properties: Mapping[str, str], *, subscribed: bool) -> Iterator[str]:
    if turns_in(properties) is None:
        yield f"its tables go together, because '{PROPAGATE}' does not name them"
    if snapshot.find(name) is not None:
        if any(any(own) for place in snapshot.get(name).places.values() for own in (place.queries or {}).values()):
            yield "what its last queries saw too much is not compensated yet; refresh it first"
        yield from (f"view '{one.name}' reads it at its csns" for one in snapshot.readers(name))
    if subscribed:
        yield "it has a subscriber, which is sent changes by their csns"


def check_reads_no_weak(snapshot: Snapshot, name: str, reads: tuple[str, ...]) -> None:
    """Refuse a view over one that has no csn."""
    for lower in map(snapshot.get, reads):
        refuse_csn(lower, f"be read by view '{name}'")


def refuse_csn(relation: Relation, wish: str) -> None:
    """``wish``: what cannot be done with a view that is at no csn."""
    if is_weak(relation):
        raise UsageError(
            f"View '{relation.name}' cannot {wish}: it is weakly consistent, with each table at a csn of its own.",
            hint=f"Take that away: rollview view set {relation.name} {CONSISTENCY}=",
            view=relation.name,
        )


def vector_of(snapshot: Snapshot, view: Relation) -> dict[str, Csn]:
    """The csn at which each table is in what the view publishes."""
    mark = high_water_mark(snapshot, view)
    return {**dict.fromkeys(view.depends_on, mark), **places_of(snapshot, view)}
