"""What a query can ever need of the relations it reads. (Chen et al., *Multiversion Based View Maintenance*, 5.1.)

Law: a column that the query does not name, and a row that is thrown away wherever the relation is read, change nothing
in its answer. A row is thrown away where a conjunct over that relation alone is not fulfilled, and the relation stands
in inner joins, or first among left joins. A conjunct that is not understood throws nothing away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from rollview.algebra.condition import condition
from rollview.algebra.expressions import identifier
from rollview.algebra.resolve import Known, Resolved
from rollview.algebra.text import parse_one, render
from rollview.algebra.used import columns_used
from rollview.core.schema import Schema
from rollview.errors import UsageError

Rows = frozenset[frozenset[str]]
"""Alternatives, each a conjunction of conditions as text."""

EVERY_ROW: Rows = frozenset([frozenset()])
NO_ROW: Rows = frozenset()
_MOST_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class Need:
    """``columns`` are folded names."""

    columns: frozenset[str]
    rows: Rows


def needs(resolved: Resolved) -> Mapping[str, Need]:
    """By folded name of the relation."""
    used = columns_used(resolved)
    rows = _rows(resolved)
    return {name: Need(columns, rows[name]) for name, columns in used.items()}


def names_in(text: str) -> frozenset[str] | None:
    """Folded names of all that a query mentions, whatever it may mean; None if it asks for what it does not name."""
    tree = parse_one(text)
    stars = any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star))
    natural = any(join.method for join in tree.find_all(exp.Join))
    return None if stars or natural else frozenset(found.name.lower() for found in tree.find_all(exp.Identifier))


def is_covered(wanted: Rows, there: Rows) -> bool:
    return all(any(alternative <= one for alternative in there) for one in wanted)


def either(left: Rows, right: Rows) -> Rows:
    """Without the alternatives that others imply."""
    both = left | right
    return frozenset(one for one in both if not any(other < one for other in both))


def rows_text(rows: Rows) -> str:
    """As a condition; empty for every row."""
    if rows == EVERY_ROW:
        return ""
    alternatives = [exp.and_(*map(parse_one, sorted(one))) for one in sorted(rows, key=sorted)]
    return render(exp.or_(*alternatives)) if alternatives else render(exp.false())


def rows_of(text: str) -> Rows:
    return _alternatives(parse_one(text)) if text else EVERY_ROW


def _rows(resolved: Resolved) -> Mapping[str, Rows]:
    known = {relation.name.lower(): relation for relation in resolved.reads}
    found: dict[str, Rows] = defaultdict(lambda: NO_ROW)
    seen: set[int] = set()
    for scope in traverse_scope(resolved.query):
        for node, source in scope.selected_sources.values():
            if isinstance(source, exp.Table):
                seen.add(id(source))
                rows = _rows_there(scope, node, source, known[source.name.lower()])
                found[source.name.lower()] = either(found[source.name.lower()], rows)
    for table in resolved.query.find_all(exp.Table):
        if id(table) not in seen:
            found[table.name.lower()] = EVERY_ROW
    return found


def _rows_there(scope: Scope, node: exp.Expr, table: exp.Table, relation: Known) -> Rows:
    """What can matter of a relation's rows at one place where it is read."""
    select = scope.expression
    if node is not table or not isinstance(select, exp.Select) or table.args.get("sample"):
        return EVERY_ROW
    alias = table.alias_or_name
    own = [_bare(one) for one in _conjuncts_over(select, table) if _is_over(one, alias)]
    understood = (_understood(_alternatives(one), relation.schema, relation.name) for one in own)
    return _product(list(understood))


def _conjuncts_over(select: exp.Select, table: exp.Table) -> Iterator[exp.Expr]:
    joins = list(select.find_all(exp.Join))
    is_inner = all(not join.side and join.kind in ("", "INNER", "CROSS") for join in joins)
    own = select.args.get("joins") or []
    is_kept = all(join.side in ("", "LEFT") for join in own)
    is_first = select.args["from_"].this is table
    if not is_inner and not (is_kept and is_first and not table.args.get("joins")):
        return
    where = select.args.get("where")
    yield from _conjuncts(where.this) if where is not None else ()
    for on in (join.args.get("on") for join in own if is_inner):
        yield from _conjuncts(on) if on is not None else ()


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Paren):
        yield from _conjuncts(node.this)
    elif isinstance(node, exp.And):
        yield from _conjuncts(node.this)
        yield from _conjuncts(node.expression)
    else:
        yield node


def _is_over(node: exp.Expr, alias: str) -> bool:
    return {column.table for column in node.find_all(exp.Column)} == {alias}


def _bare(node: exp.Expr) -> exp.Expr:
    """The condition as the relation's own."""

    def bare(part: exp.Expr) -> exp.Expr:
        return exp.Column(this=identifier(part.name)) if isinstance(part, exp.Column) else part

    return node.transform(bare)


def _alternatives(node: exp.Expr) -> Rows:
    """The condition as alternatives; where those would be too many, as one."""
    match node:
        case exp.Paren():
            return _alternatives(node.this)
        case exp.Or():
            return either(_alternatives(node.this), _alternatives(node.expression))
        case exp.And():
            sides = [_alternatives(node.this), _alternatives(node.expression)]
            return _product(sides)
        case exp.Boolean():
            return EVERY_ROW if node.this else NO_ROW
    return frozenset([frozenset([render(node)])])


def _product(parts: Iterable[Rows]) -> Rows:
    """What fulfils all; a part that would make too many alternatives is left out, and throws nothing away."""
    whole = EVERY_ROW
    for part in parts:
        if len(whole) * len(part) <= _MOST_ALTERNATIVES:
            whole = either(NO_ROW, frozenset(one | other for one, other in product(whole, part)))
    return whole


def _understood(rows: Rows, schema: Schema, name: str) -> Rows:
    return either(NO_ROW, frozenset(frozenset(one for one in some if _has_meaning(one, schema, name)) for some in rows))


def _has_meaning(text: str, schema: Schema, name: str) -> bool:
    try:
        condition(text, schema, name)
    except UsageError:
        return False
    return True
