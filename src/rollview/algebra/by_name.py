"""Joins by name, written out as Spark understands them.

Law: ``USING (k)`` compares the first column ``k`` that stands on the left with the right side's. Behind it ``k`` alone
means one column: the left one, after a RIGHT join the right one, after a FULL join whichever is not NULL. All other
columns stay what they were, behind those that met.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from rollview.algebra.expressions import all_of, column, named


@dataclass(frozen=True, slots=True)
class _Seen:
    """A column that can be named without a table."""

    name: str
    value: exp.Expr


class _Unknown(Exception):
    """Something stands there whose columns are not known here."""


def written_out(tree: exp.Query, columns: Mapping[str, Sequence[str]]) -> exp.Query:
    """The query with ON in place of USING and NATURAL. ``columns``: of each relation, by folded name."""
    made = tree.copy()
    for scope in traverse_scope(made):
        if isinstance(scope.expression, exp.Select) and any(map(is_by_name, _joins(scope.expression))):
            try:
                _write_out(scope.expression, scope, columns)
            except _Unknown:
                continue
    return made


def is_by_name(join: exp.Join) -> bool:
    return bool(join.args.get("using")) or join.method == "NATURAL"


def _joins(select: exp.Select) -> list[exp.Join]:
    return select.args.get("joins") or []


def _write_out(select: exp.Select, scope: Scope, columns: Mapping[str, Sequence[str]]) -> None:
    if select.args.get("laterals"):
        raise _Unknown
    from_ = select.args["from_"].this
    seen, met = _columns_of(from_, scope, columns), set[str]()
    conditions: list[tuple[exp.Join, exp.Expr]] = []
    for join in _joins(select):
        right = _columns_of(join.this, scope, columns)
        names = _names(join, seen, right)
        pairs = [(_first(seen, name), _first(right, name)) for name in names]
        if is_by_name(join):
            equal = (exp.EQ(this=ours.value.copy(), expression=theirs.value.copy()) for ours, theirs in pairs)
            conditions.append((join, all_of(equal)))
        met.update(name.lower() for name in names)
        seen = _joined(join, seen, right, pairs)
    references = _references(select, met)
    _expand_star(select, seen)
    for join, on in conditions:
        join.set("using", None)
        join.set("method", None)
        join.set("on", on)
    for reference in references:
        found = [one for one in seen if one.name.lower() == reference.name.lower()]
        # more than one: ambiguous, and told as such
        if len(found) == 1:
            value = found[0].value.copy()
            is_output = reference.parent is select and not isinstance(value, exp.Column)
            reference.replace(named(value, reference.name) if is_output else value)


def _columns_of(source: exp.Expr, scope: Scope, columns: Mapping[str, Sequence[str]]) -> list[_Seen]:
    alias = source.alias_or_name
    if source.args.get("pivots") or not alias:
        raise _Unknown
    listed = source.args["alias"].columns if source.args.get("alias") else []
    names = [item.name for item in listed] or _names_of(scope.sources.get(alias), columns)
    return [_Seen(name, column(alias, name)) for name in names]


def _names_of(source: exp.Expr | Scope | None, columns: Mapping[str, Sequence[str]]) -> list[str]:
    if isinstance(source, exp.Table):
        if source.name.lower() in columns:
            return list(columns[source.name.lower()])
    elif isinstance(source, Scope):
        alias = source.expression.parent.args.get("alias") if source.expression.parent is not None else None
        if isinstance(alias, exp.TableAlias) and alias.columns:
            return [item.name for item in alias.columns]
        return _outputs(source, columns)
    raise _Unknown


def _outputs(scope: Scope, columns: Mapping[str, Sequence[str]]) -> list[str]:
    first, inner = scope.expression, scope
    while isinstance(first, exp.SetOperation):
        inner = inner.set_operation_scopes[0]
        first = inner.expression
    if not isinstance(first, exp.Select):
        raise _Unknown
    names: list[str] = []
    for item in first.selects:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            names += _star(first, inner, columns)
        elif item.is_star or not item.alias_or_name:
            raise _Unknown
        else:
            names.append(item.alias_or_name)
    return names


def _star(select: exp.Select, scope: Scope, columns: Mapping[str, Sequence[str]]) -> list[str]:
    if any(map(is_by_name, _joins(select))) or select.args.get("laterals") or select.args.get("from_") is None:
        raise _Unknown
    sources = [select.args["from_"].this, *(join.this for join in _joins(select))]
    return [one.name for source in sources for one in _columns_of(source, scope, columns)]


def _names(join: exp.Join, left: Sequence[_Seen], right: Sequence[_Seen]) -> list[str]:
    """NATURAL meets all that both sides have, in any spelling."""
    if join.method == "NATURAL":
        there = {one.name.lower() for one in right}
        return list(dict.fromkeys(one.name.lower() for one in left if one.name.lower() in there))
    return [name.name for name in join.args.get("using") or ()]


def _first(seen: Sequence[_Seen], name: str) -> _Seen:
    found = next((one for one in seen if one.name.lower() == name.lower()), None)
    if found is None:
        raise _Unknown
    return found


def _joined(
    join: exp.Join, left: Sequence[_Seen], right: Sequence[_Seen], pairs: Sequence[tuple[_Seen, _Seen]]
) -> list[_Seen]:
    if (join.kind or "").upper() in ("SEMI", "ANTI"):
        return list(left)
    side = (join.side or "").upper() or ("FULL" if (join.kind or "").upper() == "OUTER" else "")
    if side == "FULL":
        met = [_Seen(ours.name, _either(ours.value, theirs.value)) for ours, theirs in pairs]
    else:
        met = [pair[1] if side == "RIGHT" else pair[0] for pair in pairs]
    gone = {id(one) for pair in pairs for one in pair}
    return [*met, *(one for one in (*left, *right) if id(one) not in gone)]


def _either(ours: exp.Expr, theirs: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=ours.copy(), expressions=[theirs.copy()])


def _references(select: exp.Select, met: set[str]) -> list[exp.Column]:
    """Columns that met, named without a table, in the select's own clauses."""
    found = []
    aliases = {item.alias.lower() for item in select.selects if isinstance(item, exp.Alias)}
    for reference in list(select.find_all(exp.Column)):
        if reference.table or reference.name.lower() not in met or isinstance(reference.this, exp.Star):
            continue
        if reference.find_ancestor(exp.Select) is not select:
            if _looks_out(reference, select):
                raise _Unknown
            continue
        clause = reference.find_ancestor(exp.Order, exp.Having, exp.Select)
        if reference.name.lower() in aliases and not isinstance(clause, exp.Select):
            continue
        found.append(reference)
    return found


def _looks_out(reference: exp.Column, select: exp.Select) -> bool:
    """Whether it may mean a column of the select from a subquery in an expression; what is in FROM does not."""
    node: exp.Expr = reference
    while node.parent is not None and node.parent is not select:
        node = node.parent
        if isinstance(node, exp.From | exp.CTE) and node.find_ancestor(exp.Select) is select:
            return False
    return not (isinstance(node, exp.Join) and reference in node.this.find_all(exp.Column))


def _expand_star(select: exp.Select, seen: Sequence[_Seen]) -> None:
    items: list[exp.Expr] = []
    for item in select.expressions:
        if not isinstance(item, exp.Star):
            items.append(item)
        elif any(item.args.values()):
            raise _Unknown
        else:
            items += [
                one.value.copy() if isinstance(one.value, exp.Column) else named(one.value.copy(), one.name)
                for one in seen
            ]
    select.set("expressions", items)
