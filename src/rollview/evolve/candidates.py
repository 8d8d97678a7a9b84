"""What a view could be defined by where something that it names is gone.

Law: nothing is guessed. What stands for a table is declared, and so is what a view can do without; columns that are
only called otherwise keep the names by which the text knows them. A substitute comes before leaving something out; then
the best extent, the fewest changes, and the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from rollview.algebra.extents import carried, together
from rollview.algebra.replacing import CannotRewrite, Replacement, RewrittenText, called, rewritten
from rollview.algebra.resolve import resolve
from rollview.algebra.used import columns_used
from rollview.catalog import Definition, Relation, RelationKind, Snapshot
from rollview.core.names import quoted, same
from rollview.core.schema import Column
from rollview.core.states import Extent, ViewState
from rollview.core.substitutes import Substitute
from rollview.evolve.dispensable import dispensable
from rollview.relations.former import TABLES, seen_tables
from rollview.relations.plans import known_to
from rollview.types.spelling import widens

_ORDER = tuple(Extent)


@dataclass(frozen=True, slots=True)
class Candidate:
    """``steps``: what is done, in words."""

    text: str
    columns: tuple[str, ...]
    extent: Extent
    steps: tuple[str, ...]
    substitutes: tuple[Substitute, ...]
    place: tuple[int, ...]

    @property
    def rank(self) -> tuple[bool, int, int, tuple[int, ...]]:
        return not self.substitutes, _ORDER.index(self.extent), len(self.steps), self.place


@dataclass(frozen=True, slots=True)
class Candidates:
    """``found``: the best first. ``refused``: what else is declared, and why it does not do. ``lost``: what is gone
    that the view names."""

    found: tuple[Candidate, ...] = ()
    refused: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _ReadFrom:
    """How one relation is read from now on. ``place``: of the substitute in the file."""

    replacement: Replacement | None
    substitute: Substitute | None = None
    place: int = 0


def candidates(
    now: Snapshot,
    view: Relation,
    after: Snapshot,
    substitutes: Sequence[Substitute],
    extents: Mapping[str, Extent] | None = None,
) -> Candidates:
    """``now``: the catalog in which the view's definition can be read; ``after``: how what it reads looks from then on.
    ``extents``: of views below it, beside what they were."""
    return _Search(now, view, after, substitutes, extents or {}).run()


class _Search:
    def __init__(
        self,
        now: Snapshot,
        view: Relation,
        after: Snapshot,
        substitutes: Sequence[Substitute],
        extents: Mapping[str, Extent],
    ) -> None:
        definition = view.definition
        assert definition is not None
        self._now, self._view, self._after, self._extents = now, view, after, extents
        self._definition: Definition = definition
        self._declared = substitutes
        self._called: dict[str, str] = definition.facts.get(TABLES, {})
        self._text = called(definition.query, self._called) if self._called else definition.query
        seen = seen_tables(now, view)
        self._seen = {name: seen.get(name) or now.get(name) for name in view.depends_on}
        self._known = {name.lower(): known_to(view, relation) for name, relation in self._seen.items()}
        self._resolved = resolve(self._text, self._known, definition.columns)
        self._used = columns_used(self._resolved)
        self._refused: list[str] = []
        self._lost: list[str] = []

    def run(self) -> Candidates:
        choices = {name.lower(): list(self._choices(name)) for name in self._seen}
        found = [
            one for ways in product(*choices.values()) for one in self._tried(dict(zip(choices, ways, strict=True)))
        ]
        ranked = tuple(sorted(found, key=lambda one: one.rank))
        return Candidates(ranked, tuple(dict.fromkeys(self._refused)), tuple(self._lost))

    def _choices(self, name: str) -> Iterator[_ReadFrom]:
        seen, present = self._seen[name], self._present(name)
        kept = {} if present is None else _kept(seen, present)
        gone = [column.name for column in seen.schema if column.name.lower() in self._used.get(name.lower(), ())]
        gone = [column for column in gone if column not in kept]
        author = next((old for old, own in self._called.items() if own == name), name)
        if present is None or gone:
            self._lost += [author] if present is None else [f"{author}.{column}" for column in gone]
            yield from self._substitutes(name, author, kept)
        if present is None:
            yield _ReadFrom(Replacement(None, {}), place=len(self._declared))
        elif _looks_like(seen, present, kept):
            yield _ReadFrom(None)
        else:
            yield _ReadFrom(Replacement(present.name, kept), place=len(self._declared))

    def _present(self, name: str) -> Relation | None:
        own = self._seen[name].id
        return next((one for one in self._after.relations.values() if one.id == own and len(one.schema)), None)

    def _substitutes(self, name: str, author: str, kept: Mapping[str, str]) -> Iterator[_ReadFrom]:
        for place, one in enumerate(self._declared):
            if not same(one.of, name) and not same(one.of, author):
                continue
            try:
                columns = self._standing(self._seen[name], one, kept)
            except CannotRewrite as reason:
                self._refused.append(f"{one.place} (for '{one.of}' by '{one.by}'): {reason}")
                continue
            yield _ReadFrom(Replacement(self._after.get(one.by).name, columns), one, place)

    def _standing(self, seen: Relation, one: Substitute, kept: Mapping[str, str]) -> dict[str, str]:
        """The columns of a table, as SQL over what stands for it."""
        by = check_substitute(self._after, one)
        below = {self._view.name, *(upper.name for upper in self._after.above(self._view.name))}
        if by.name in below:
            raise CannotRewrite(f"view '{by.name}' reads this view")
        if by.state is ViewState.SCHEMA_CHANGED or not by.is_kept:
            raise CannotRewrite(f"the rows of '{by.name}' are not here, or stop before")
        first = max(by.created, by.readable_from)
        if by.kind is RelationKind.TABLE and first > self._after.moment.csn:
            raise CannotRewrite(f"'{by.name}' is here from csn {first} on, and is needed at {self._after.moment.csn}")
        own = by.id == seen.id
        declared = {name.lower(): column for name, column in one.columns.items()}
        found = {}
        for column in seen.schema:
            stands = declared.get(column.name.lower())
            if stands is not None:
                other = by.schema.find(stands)
                assert other is not None
                found[column.name] = _as_type(column, other, by.name)
            elif own and column.name in kept:
                found[column.name] = kept[column.name]
        return found

    def _tried(self, ways: Mapping[str, _ReadFrom]) -> Iterator[Candidate]:
        replaced = {name: way.replacement for name, way in ways.items() if way.replacement is not None}
        chosen = [way for way in ways.values() if way.substitute is not None]
        try:
            made = rewritten(
                self._text, self._definition.columns, self._known, replaced, dispensable(self._definition.properties)
            )
        except CannotRewrite as reason:
            by = ", ".join(f"{way.substitute.place} (by '{way.substitute.by}')" for way in chosen if way.substitute)
            self._refused.append(f"{by or 'without what is gone'}: {self._told(reason)}")
            return
        substitutes = tuple(way.substitute for way in chosen if way.substitute is not None)
        steps = (*(f"'{one.by}' for '{one.of}'" for one in substitutes), *map(str, made.left_out))
        place = tuple(way.place for way in ways.values())
        yield Candidate(made.text, made.columns, self._extent(made, substitutes), steps, substitutes, place)

    def _told(self, reason: CannotRewrite) -> str:
        """With tables by the names that the author knows."""
        said = str(reason)
        for author, own in self._called.items():
            said = said.replace(f"'{own}'", f"'{author}'")
        return said

    def _extent(self, made: RewrittenText, substitutes: Iterable[Substitute]) -> Extent:
        below = [one.extent for one in substitutes] + [self._extents.get(name, Extent.EQUAL) for name in self._seen]
        stands = (carried(extent, monotone=made.monotone) for extent in below)
        return together((*stands, *(one.extent for one in made.left_out)))


def check_substitute(snapshot: Snapshot, one: Substitute) -> Relation:
    """What stands for a table, if it is there and has its columns."""
    by = snapshot.find(one.by)
    if by is None or not len(by.schema):
        raise CannotRewrite(f"there is no table or view '{one.by}'")
    for old, column in one.columns.items():
        if by.schema.find(column) is None:
            raise CannotRewrite(f"'{by.name}' has no column '{column}', which is to stand for '{old}'")
    return by


def _kept(seen: Relation, present: Relation) -> dict[str, str]:
    """The columns by which a view knows a relation that are there from then on, as SQL."""
    if seen.kind is RelationKind.VIEW:
        pairs = [(column, present.schema.find(column.name)) for column in seen.schema]
        return {old.name: quoted(new.name) for old, new in pairs if new is not None and _goes_on(old, new)}
    places = {column.stored: column for column in present.schema}
    return {old.name: quoted(places[old.stored].name) for old in seen.schema if old.stored in places}


def _goes_on(old: Column, new: Column) -> bool:
    return old.type == new.type or widens(old.type, new.type)


def _looks_like(seen: Relation, present: Relation, kept: Mapping[str, str]) -> bool:
    """Whether a text may go on reading it by its own names, and finds no others."""
    own = [quoted(column.name) for column in seen.schema]
    is_same = [kept.get(column.name) for column in seen.schema] == own
    return seen.name == present.name and is_same and own == [quoted(column.name) for column in present.schema]


def _as_type(column: Column, other: Column, by: str) -> str:
    if column.type == other.type or widens(column.type, other.type):
        return quoted(other.name)
    if widens(other.type, column.type):
        return f"CAST({quoted(other.name)} AS {column.type})"
    raise CannotRewrite(
        f"column '{other.name}' of '{by}' is {other.type.upper()}, and '{column.name}' is {column.type.upper()}"
    )
