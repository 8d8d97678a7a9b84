"""A view of the warehouse before the judge: what it showed at each csn, beside its definition at that csn.

Law: every csn at which a table below the view changed, or at which the view's own delta has rows, is one state; between
them neither can change. The csn is what a version claims, so each is compared once. A csn that cannot be read, in the
view or below it, is a state that was not shown. Judged are the versions that can be read, or those that were published:
the extents, in the order in which readers got them. Tables that are not copied are read once, whole, at their sources,
and taken back to each csn by what was captured of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from rollview.capture.asking import SourceLookup
from rollview.catalog import Relation, Snapshot
from rollview.consistency.bags import Bag
from rollview.consistency.claims import judge_claims
from rollview.consistency.history import PublishedVersion
from rollview.consistency.levels import Level
from rollview.consistency.states import Vector
from rollview.consistency.verdict import Counterexample, Verdict
from rollview.core.interval import Csn, Interval
from rollview.core.names import CSN
from rollview.errors import OutOfReach, UsageError
from rollview.publish.workplace import Workplace
from rollview.query.reading import check_source_names
from rollview.query.verify import verify, verify_vector
from rollview.relations.plans import check_reachable, covered
from rollview.relations.points import Point, resolve
from rollview.relations.reader import Reader, StandIn
from rollview.relations.versions import redefined
from rollview.relations.weak import is_weak, refuse_csn, vector_of
from rollview.results import HistoryJudged, JudgedVersion, Verification

Tell = Callable[[str], None]
_SHOWS = ("create", "apply", "adapt")
"""Steps after which readers get other rows."""


@dataclass(frozen=True, slots=True)
class LedgerStates:
    """The csns as the judge's states: one way of single steps, none of which splits a transaction.

    Rows stay in Spark: a state is told by the csn since which the view is as it is then, and a version that equals
    it by the same.
    """

    csns: Sequence[Csn]
    same: Mapping[Csn, Csn]

    @property
    def first(self) -> Vector:
        return (0,)

    @property
    def last(self) -> Vector:
        return (len(self.csns) - 1,)

    def show(self, at: Vector) -> Bag:
        return {("csn", self.same[self.csns[at[0]]]): 1}

    def is_whole(self, at: Vector) -> bool:
        return True

    def steps(self, at: Vector) -> Iterable[Vector]:
        return ((at[0] + 1,),) if at != self.last else ()

    def named(self, at: Vector) -> str:
        return f"csn {self.csns[at[0]]}"


@dataclass(frozen=True, slots=True)
class HistoryWish:
    """``published``: the versions that readers got, and not all that can be read. ``ask_sources``: tables that are not
    copied are read once, whole, at their sources."""

    after: Point | None = None
    through: Point | None = None
    published: bool = False
    ask_sources: bool = False


def check_history(place: Workplace, name: str, wish: HistoryWish, tell: Tell | None = None) -> HistoryJudged:
    reader = place.reader()
    view = reader.snapshot.view(name)
    with closing(SourceLookup(place.catalog, place.data)) as sources:
        if is_weak(view):
            _refuse_interval(view, wish)
            at = vector_of(reader.snapshot, view)
            reader.stand_ins = _asked(reader.snapshot, view, at, sources, wish)
            return _vector_judged(place, reader, view)
        interval = _interval(place, reader.snapshot, view, wish)
        newest = {table.name: interval.through for table in _tables(reader.snapshot, view)}
        reader.stand_ins = _asked(reader.snapshot, view, newest, sources, wish)
        return _judged(place, reader, view, interval, wish, tell)


def _judged(
    place: Workplace, reader: Reader, view: Relation, interval: Interval, wish: HistoryWish, tell: Tell | None
) -> HistoryJudged:
    own = {row[0] for row in reader.changes(view.name, interval).select(CSN).distinct().collect()}
    shown = _published(place, view, interval) if wish.published else []
    csns = sorted({*_changed(place, reader.snapshot, view, interval), *own, *shown})
    checked = {}
    for number, csn in enumerate(csns):
        if tell is not None:
            tell(f"csn {csn}, {number + 1} of {len(csns)}")
        if _is_readable(reader.snapshot, view, csn):
            checked[csn] = verify(reader, view.name, csn)
    versions = [csn for csn in (shown if wish.published else csns) if csn in checked]
    if not versions:
        raise OutOfReach(f"View '{view.name}' can be read at no csn of {interval}.", name=view.name)
    same = _alike(csns, own, checked) if wish.published else dict(zip(csns, csns, strict=True))
    at_rest = not _moves_on(place, reader.snapshot, view, interval.through)
    verdict = _judge(LedgerStates(csns, same), versions, checked, at_rest)
    return _told(view.name, csns, versions, checked, verdict)


def _asked(
    snapshot: Snapshot, view: Relation, at: Mapping[str, Csn], sources: SourceLookup, wish: HistoryWish
) -> dict[str, StandIn]:
    """Rows of tables that are not here."""
    absent = [one for one in _tables(snapshot, view) if not one.is_kept]
    if absent and not wish.ask_sources:
        raise UsageError(
            f"Rows of table '{absent[0].name}' are not here, and view '{view.name}' cannot be compared without them.",
            hint="With --ask-sources such tables are read once, whole, at their sources.",
            table=absent[0].name,
        )
    if absent:
        check_source_names(snapshot, view)
    found = {one.name: replace(sources.stream(one, at[one.name]), moves=True) for one in absent}
    sources.release()
    return found


def _refuse_interval(view: Relation, wish: HistoryWish) -> None:
    if (wish.after, wish.through) != (None, None):
        refuse_csn(view, "be judged over an interval of csns")


def _vector_judged(place: Workplace, reader: Reader, view: Relation) -> HistoryJudged:
    """Of a view that is weakly consistent, what it publishes now."""
    at = vector_of(reader.snapshot, view)
    found = verify_vector(reader, view.name)
    so_far = _moves_on(place, reader.snapshot, view, min(at.values()))
    named = ", ".join(f"{table} {csn}" for table, csn in at.items())
    version = JudgedVersion(found.csn, f"{found.rows} rows", named if found.equal else None)
    if not found.equal:
        level = Level.CONVERGENT if so_far else Level.NONE
        counts = f"{found.missing_count} rows missing, {found.surplus_count} too many"
        reason = f"with {named} it is not what its definition gives: {counts}"
        samples = _sample(found.missing), _sample(found.surplus)
        return HistoryJudged(view.name, str(level), so_far, False, (version,), str(Level.WEAK), reason, *samples)
    facts = (view.name, str(Level.WEAK), so_far, False, (version,), str(Level.STRONG))
    return HistoryJudged(*facts, "it is published with each table at a csn of its own")


def _published(place: Workplace, view: Relation, interval: Interval) -> list[Csn]:
    """The csns of the extents that readers got, one after another, as far as steps are recorded."""
    steps = reversed(place.catalog.steps(view.name, None, "done"))
    csns = [step.profile.get("csn", step.interval.through) for step in steps if step.kind in _SHOWS]
    begin = max((place for place, csn in enumerate(csns) if csn < interval.after), default=-1)
    return [csn for csn in csns[begin + 1 :] if csn <= interval.through]


def _alike(csns: Sequence[Csn], own: Collection[Csn], checked: Mapping[Csn, Verification]) -> dict[Csn, Csn]:
    """Each csn with the first since which the view has not changed. One that is not known to be right is by itself."""
    found: dict[Csn, Csn] = {}
    first = csns[0]
    for csn in csns:
        if csn in own or csn not in checked or not checked[csn].equal:
            first = csn
        found[csn] = first
    return found


def _interval(place: Workplace, snapshot: Snapshot, view: Relation, wish: HistoryWish) -> Interval:
    """What was asked for, as far as the view and the tables below it can be read."""
    reaches = [covered(snapshot, one) for one in (view, *_tables(snapshot, view))]
    first, last = max(reach.after for reach in reaches), min(reach.through for reach in reaches)
    begin = first if wish.after is None else max(first, resolve(place.catalog, wish.after, view.name))
    end = last if wish.through is None else min(last, resolve(place.catalog, wish.through, view.name))
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


def _changed(place: Workplace, snapshot: Snapshot, view: Relation, interval: Interval) -> set[Csn]:
    """The csns at which a table below the view changed, and both ends."""
    found = {interval.after, interval.through}
    for table in _tables(snapshot, view):
        found |= {change.csn for change in place.catalog.changes(table.name, interval)}
    return found


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


def _judge(
    states: LedgerStates, versions: Sequence[Csn], checked: Mapping[Csn, Verification], at_rest: bool
) -> Verdict:
    claims = [(states.csns.index(csn),) for csn in versions]
    rows = [
        PublishedVersion(states.show(claim) if checked[csn].equal else {("differs", csn): 1})
        for csn, claim in zip(versions, claims, strict=True)
    ]
    return judge_claims(states, rows, claims, at_rest=at_rest)


def _told(
    name: str, csns: Sequence[Csn], versions: Sequence[Csn], checked: Mapping[Csn, Verification], verdict: Verdict
) -> HistoryJudged:
    shown = tuple(
        JudgedVersion(csn, f"{checked[csn].rows} rows", f"csn {csn}" if checked[csn].equal else None)
        for csn in versions
    )
    facts = (name, str(verdict.level), verdict.so_far, verdict.undecided, shown)
    wrong = verdict.counterexample
    if wrong is None:
        return HistoryJudged(*facts)
    differs = next((checked[csn] for csn in versions if not checked[csn].equal), None)
    if differs is None:
        return HistoryJudged(*facts, str(wrong.breaks), _reason(csns, versions, checked, wrong))
    counts = f"{differs.missing_count} rows missing, {differs.surplus_count} too many"
    reason = f"at csn {differs.csn} it is not what its definition gives: {counts}"
    return HistoryJudged(*facts, str(wrong.breaks), reason, _sample(differs.missing), _sample(differs.surplus))


def _reason(
    csns: Sequence[Csn], versions: Sequence[Csn], checked: Mapping[Csn, Verification], wrong: Counterexample
) -> str:
    """Why versions that are all right are not the next level."""
    if wrong.breaks is Level.STRONG:
        before, after = (versions[place] for place in wrong.versions)
        return f"csn {after} was published after csn {before}"
    missed = csns[wrong.nearest[0]] if wrong.nearest is not None else None
    if missed is not None and missed in checked:
        return f"csn {missed} was passed, and not published"
    hidden = next((csn for csn in csns if csn not in checked), missed)
    return f"csn {hidden} cannot be read: changes around it are stored as one"


def _sample(rows: Sequence[object]) -> str | None:
    return "; ".join(map(str, rows[:3])) or None
