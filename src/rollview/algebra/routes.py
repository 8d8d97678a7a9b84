"""How to come from what changed to the rows that it can join with, by keys alone.

Law: a row of an inner join's delta has a changed row in it, and every other row of it equals one that is known by then
in the columns that the join compares. So rows that no route reaches from a change are in no row of the delta, and a
table may stand for itself by those alone. (Agrawal et al., *Efficient View Maintenance at Data Warehouses*: a sweep
goes from source to source like this.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.equalities import KEY_TYPES
from rollview.algebra.operator import Operator, walk
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf, leaves
from rollview.algebra.types import compared_one_to_one
from rollview.algebra.view import Mode, ViewPlan


@dataclass(frozen=True, slots=True)
class KeyHop:
    """To the rows of ``relation`` whose ``equal`` columns are the ``columns`` of rows that are known of place
    ``known``. Places are inputs of one join."""

    known: str
    columns: tuple[str, ...]
    place: str
    relation: str
    equal: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeyRoute:
    """From the changes of a relation at one place to all asked relations of the same join."""

    place: str
    relation: str
    hops: tuple[KeyHop, ...]


class NotAskableError(Exception):
    """Why rows of a relation cannot be asked for by keys."""


def routes(plan: ViewPlan, asked: Set[str]) -> tuple[KeyRoute, ...]:
    """One for each place that can change; NotAskableError if a refresh may need rows that no key tells."""
    if plan.mode is Mode.WHOLE:
        raise NotAskableError(f"it is recomputed whole ({plan.outline.whole_because})")
    assert plan.outline.rel is not None
    top = plan.outline.rel if plan.summary is None else plan.summary.input
    found: list[KeyRoute] = []
    for node in walk(top):
        if not node.reads_states or not any(leaf.relation in asked for leaf in leaves(node)):
            continue
        if not isinstance(node, Block):
            raise NotAskableError(f"{_spelled(node)} looks at rows of a key again, whichever they are")
        found += _routes(node, asked)
    return tuple(found)


def asked_columns(found: Iterable[KeyRoute], asked: frozenset[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The tables that routes ask for, and by which columns, each once."""
    hops = (hop for route in found for hop in route.hops if hop.relation in asked)
    yield from dict.fromkeys((hop.relation, hop.equal) for hop in hops)


def _spelled(node: Operator) -> str:
    note = node.note()
    return note.operator if note is not None else " or ".join(node.words)


def _routes(block: Block, asked: Set[str]) -> Iterator[KeyRoute]:
    tables = {source.alias: _table(source.rel) for source in block.sources}
    for alias, table in tables.items():
        if table is None:
            raise NotAskableError(f"it joins with '{alias}', which is no table or view but is made on the way")
    known = {alias: table for alias, table in tables.items() if table is not None}
    wanted = {alias for alias, table in known.items() if table.relation in asked}
    ties = _ties(block, known, wanted)
    for alias in known:
        yield KeyRoute(alias, known[alias].relation, _hops(alias, known, wanted, ties))


@dataclass(frozen=True, slots=True)
class _JoinedTable:
    """A stored relation, and which of its columns the join sees under which names."""

    relation: str
    columns: Mapping[str, str]


def _table(rel: Operator) -> _JoinedTable | None:
    """Through selections and projections: rows that those leave out are asked for in vain, and harm nobody."""
    if isinstance(rel, Leaf):
        return _JoinedTable(rel.relation, {name: name for name in rel.columns})
    if not isinstance(rel, Block) or len(rel.sources) != 1:
        return None
    below = _table(rel.sources[0].rel)
    if below is None:
        return None
    plain = {o.name: o.expression.name for o in rel.outputs if isinstance(o.expression, exp.Column)}
    columns = {name: below.columns[inner] for name, inner in plain.items() if inner in below.columns}
    return _JoinedTable(below.relation, columns)


Ties = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""For two places, the columns of the first and of the second that the join compares."""


def _ties(block: Block, known: Mapping[str, _JoinedTable], wanted: Set[str]) -> Ties:
    found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    rels = {source.alias: source.rel for source in block.sources}
    for condition in block.where:
        if not isinstance(condition, exp.EQ):
            continue
        sides = condition.this, condition.expression
        if not all(isinstance(side, exp.Column) for side in sides) or sides[0].table == sides[1].table:
            continue
        if not compared_one_to_one(block.sources, *sides):
            continue
        for ours, theirs in (sides, sides[::-1]):
            names = known[ours.table].columns.get(ours.name), known[theirs.table].columns.get(theirs.name)
            is_key = rels[theirs.table].type_of(theirs.name) in KEY_TYPES
            if names[0] is not None and names[1] is not None and (is_key or theirs.table not in wanted):
                found[ours.table, theirs.table].append((names[0], names[1]))
    return found


def _hops(start: str, known: Mapping[str, _JoinedTable], wanted: Set[str], ties: Ties) -> tuple[KeyHop, ...]:
    """To every wanted place, over others where there is no straight way."""
    hops: dict[str, KeyHop] = {}
    reached = [start]
    for place in reached:
        for other in known:
            if other not in reached and (pairs := ties.get((place, other))):
                ours, theirs = zip(*dict.fromkeys(pairs), strict=True)
                hops[other] = KeyHop(place, ours, other, known[other].relation, theirs)
                reached.append(other)
    missing = sorted(known[place].relation for place in wanted if place not in reached)
    if missing:
        raise NotAskableError(
            f"changes of '{known[start].relation}' lead to no rows of '{missing[0]}' by equal columns of one type, "
            "whole numbers or text"
        )
    return tuple(hop for place, hop in hops.items() if _leads(place, hops, wanted))


def _leads(place: str, hops: Mapping[str, KeyHop], wanted: Set[str]) -> bool:
    """Whether a wanted place is reached there, or over it."""
    return place in wanted or any(_leads(other, hops, wanted) for other, hop in hops.items() if hop.known == place)
