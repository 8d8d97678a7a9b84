"""A view of the warehouse before the judge: what it showed at each csn, beside its definition at that csn.

Law: every csn at which a table below the view changed, or at which the view's own delta has rows, is one state; between
them neither can change. The csn is what a version claims, so each is compared once. A csn that cannot be read, in the
view or below it, is a state that was not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rollview.catalog import Relation, Snapshot
from rollview.consistency.bags import Bag
from rollview.consistency.claims import judge_claims
from rollview.consistency.history import PublishedVersion
from rollview.consistency.states import Vector
from rollview.consistency.verdict import Verdict
from rollview.core.interval import Csn, Interval
from rollview.core.names import CSN
from rollview.errors import OutOfReach, UsageError
from rollview.publish.workplace import Workplace
from rollview.query.verify import verify
from rollview.relations.plans import check_reachable, covered
from rollview.relations.points import Point, resolve
from rollview.relations.reader import Reader
from rollview.relations.versions import redefined
from rollview.results import HistoryJudged, JudgedVersion, Verification

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LedgerStates:
    """The csns as the judge's states: one way of single steps, none of which splits a transaction.

    Rows stay in Spark: a state is told by its csn, and a version that equals it by the same.
    """

    csns: Sequence[Csn]

    @property
    def first(self) -> Vector:
        return (0,)

    @property
    def last(self) -> Vector:
        return (len(self.csns) - 1,)

    def show(self, at: Vector) -> Bag:
        return {("csn", self.csns[at[0]]): 1}

    def is_whole(self, at: Vector) -> bool:
        return True

    def steps(self, at: Vector) -> Iterable[Vector]:
        return ((at[0] + 1,),) if at != self.last else ()

    def named(self, at: Vector) -> str:
        return f"csn {self.csns[at[0]]}"


def check_history(
    place: Workplace, name: str, after: Point | None, through: Point | None, tell: Tell | None = None
) -> HistoryJudged:
    reader = place.reader()
    view = reader.snapshot.view(name)
    interval = _interval(place, reader.snapshot, view, after, through)
    csns = _states(place, reader, view, interval)
    checked = {}
    for number, csn in enumerate(csns):
        if tell is not None:
            tell(f"csn {csn}, {number + 1} of {len(csns)}")
        if _is_readable(reader.snapshot, view, csn):
            checked[csn] = verify(reader, view.name, csn)
    if not checked:
        raise OutOfReach(f"View '{view.name}' can be read at no csn of {interval}.", name=view.name)
    at_rest = not _moves_on(place, reader.snapshot, view, interval.through)
    return _told(view.name, csns, checked, _judge(csns, checked, at_rest))


def _interval(
    place: Workplace, snapshot: Snapshot, view: Relation, after: Point | None, through: Point | None
) -> Interval:
    """What was asked for, as far as the view and the tables below it can be read."""
    reaches = [covered(snapshot, one) for one in (view, *_tables(snapshot, view))]
    first, last = max(reach.after for reach in reaches), min(reach.through for reach in reaches)
    begin = first if after is None else max(first, resolve(place.catalog, after, view.name))
    end = last if through is None else min(last, resolve(place.catalog, through, view.name))
    if begin > end:
        raise UsageError(
            f"View '{view.name}' and what it reads can be read together from csn {first} through {last} only.",
            hint="Give --after and --through within that.",
            oldest=first,
            newest=last,
        )
    return Interval(begin, end)


def _tables(snapshot: Snapshot, view: Relation) -> Iterator[Relation]:
    """Those of every definition that the view, or one below it, has had."""
    then = [snapshot, *(snapshot.at(csn - 1) for csn in redefined(snapshot, view))]
    below = {table for one in then for table in one.tables_below(one.get(view.name))}
    return (snapshot.get(table) for table in sorted(below))


def _states(place: Workplace, reader: Reader, view: Relation, interval: Interval) -> list[Csn]:
    found = {interval.after, interval.through}
    for table in _tables(reader.snapshot, view):
        found |= {change.csn for change in place.catalog.changes(table.name, interval)}
    own = reader.changes(view.name, interval).select(CSN).distinct().collect()
    return sorted(found | {row[0] for row in own})


def _is_readable(snapshot: Snapshot, view: Relation, csn: Csn) -> bool:
    try:
        for one in (view, *_tables(snapshot, view)):
            check_reachable(snapshot, one, csn)
    except OutOfReach:
        return False
    return True


def _moves_on(place: Workplace, snapshot: Snapshot, view: Relation, through: Csn) -> bool:
    """Whether something below the view has changed since."""
    newest = snapshot.moment.csn
    if newest <= through:
        return False
    since = Interval(through, newest)
    return any(place.catalog.changes(table.name, since) for table in _tables(snapshot, view))


def _judge(csns: Sequence[Csn], checked: dict[Csn, Verification], at_rest: bool) -> Verdict:
    states = LedgerStates(csns)
    places = [place for place, csn in enumerate(csns) if csn in checked]
    versions = [
        PublishedVersion(states.show((place,)) if checked[csns[place]].equal else {("differs", csns[place]): 1})
        for place in places
    ]
    return judge_claims(states, versions, [(place,) for place in places], at_rest=at_rest)


def _told(name: str, csns: Sequence[Csn], checked: dict[Csn, Verification], verdict: Verdict) -> HistoryJudged:
    versions = tuple(
        JudgedVersion(csn, f"{one.rows} rows", f"csn {csn}" if one.equal else None) for csn, one in checked.items()
    )
    facts = (name, str(verdict.level), verdict.so_far, verdict.undecided, versions)
    wrong = verdict.counterexample
    if wrong is None:
        return HistoryJudged(*facts)
    differs = next((one for one in checked.values() if not one.equal), None)
    if differs is None:
        hidden = [csn for csn in csns if csn not in checked]
        reason = f"csn {hidden[0]} cannot be read: changes around it are stored as one"
        return HistoryJudged(*facts, str(wrong.breaks), reason)
    counts = f"{differs.missing_count} rows missing, {differs.surplus_count} too many"
    reason = f"at csn {differs.csn} it is not what its definition gives: {counts}"
    return HistoryJudged(*facts, str(wrong.breaks), reason, _sample(differs.missing), _sample(differs.surplus))


def _sample(rows: Sequence[object]) -> str | None:
    return "; ".join(map(str, rows[:3])) or None
