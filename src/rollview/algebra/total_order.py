"""Which orders leave no ties: what rows that are equal in some columns must be equal in besides.

Law: rows of a SELECT that are equal in all columns that it uses may change places, and its result stays the same. So an
order is total when its columns determine all columns in use: by themselves, by a key of a table, by an equality that
every row has passed, by GROUP BY or DISTINCT. When in doubt, an order is not total.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from rollview.algebra.expressions import conjuncts
from rollview.algebra.functions import is_aggregate, is_generator
from rollview.algebra.resolve import Known
from rollview.algebra.text import render

Place = tuple[str, str]
"""A column: its table's alias and its name, both folded."""
_MADE_UP = re.compile(r"_(q_)?\d+")
"""What resolving calls a subquery without a name."""
_FLOATING, _WITHOUT_ORDER = ("float", "double"), ("map<", "variant", "interval", "void")
_GENERATED = (exp.Lateral, exp.Unnest, exp.Values, exp.UDTF)


class NotKnown(Exception):
    """Something stands there of whose rows nothing is known here."""


@dataclass(frozen=True, slots=True)
class Implied:
    """Rows that are equal in ``given`` are equal in ``follows``."""

    given: frozenset[Place]
    follows: frozenset[Place]


@dataclass(frozen=True, slots=True)
class OrderedSource:
    """What FROM has under an alias; types where they are known. ``sure_keys``: those without NULLs."""

    columns: tuple[str, ...]
    types: Mapping[str, str]
    keys: tuple[frozenset[str], ...]
    sure_keys: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """The rows of a SELECT before its window functions: its groups, or those that FROM and WHERE leave."""

    select: exp.Select
    sources: Mapping[str, OrderedSource]
    used: tuple[Place, ...]
    rules: tuple[Implied, ...]
    groups: tuple[exp.Expr, ...] | None
    is_plain: bool = True
    """Each row comes from one row of each source, or from one group: no generator makes several of it."""

    def settles(self, given: Iterable[exp.Expr]) -> bool:
        """Whether rows that are equal in these expressions may change places."""
        return not list(self._open(list(given)))

    def missing(self, given: Sequence[exp.Expr]) -> tuple[exp.Expr, ...] | None:
        """What to order by besides, so that no tie matters; None where columns that have no order are left."""
        listed, added = list(given), list[exp.Expr]()
        for candidate in self._candidates(listed):
            if render(candidate) in {render(one) for one in listed}:
                continue
            if any(render(candidate) == render(one) for one in self._terms(self._open(listed))):
                added.append(candidate)
                listed.append(candidate)
        return tuple(added) if self.settles(listed) else None

    def determines(self, given: Iterable[exp.Expr], value: exp.Expr) -> bool:
        """Whether rows that are equal in ``given`` are equal in a value that the SELECT gives."""
        listed = list(given)
        if render(value) in {render(one) for one in listed} and (
            self.groups is not None or not self.is_floating(value)
        ):
            return True
        if any(isinstance(node, exp.Window | exp.Query) or is_generator(node) for node in value.walk()):
            return False
        reached = self._reached(listed)
        if self.groups is not None and is_aggregate(value):
            return not list(self._open(listed))
        return all(_place(node) in reached for node in value.find_all(exp.Column))

    def is_single(self, given: Iterable[exp.Expr]) -> bool:
        """Whether there is at most one row for any values of these expressions."""
        listed = list(given)
        if self.groups is not None:
            return self.is_plain and not list(self._open(listed))
        reached = self._reached(listed)
        return self.is_plain and all(
            any({(alias, name) for name in key} <= reached for key in source.keys)
            for alias, source in self.sources.items()
        )

    def without_order(self, given: Iterable[exp.Expr]) -> list[exp.Expr]:
        """Columns that are left open and have no order."""
        return [one for one in self._open(list(given)) if not self.has_order(one)]

    def is_floating(self, value: exp.Expr) -> bool:
        return _is_in(self._type(_place(value)), _FLOATING)

    def has_order(self, value: exp.Expr) -> bool:
        """False for a column of a type that has none."""
        return not _is_in(self._type(_place(value)), _WITHOUT_ORDER)

    def text(self, expression: exp.Expr) -> str:
        """As it can stand in the author's text: a subquery without a name has none there either."""
        plain = expression.copy()
        for node in plain.find_all(exp.Column):
            if _MADE_UP.fullmatch(node.table):
                node.set("table", None)
        return render(plain)

    def _open(self, given: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
        """What the given expressions leave open, in a fixed order."""
        reached, listed = self._reached(given), {render(one) for one in given}
        if self.groups is None:
            yield from (self._column(place) for place in self.used if place not in reached)
            return
        for key in self.groups:
            places = {_place(node) for node in key.find_all(exp.Column)}
            if render(key) not in listed and (not places <= reached or key.find(exp.Query)):
                yield key

    def _candidates(self, given: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Columns of keys first: they leave the least to add."""
        found = self._terms(self._open(given))
        if self.groups is not None:
            return found
        keys = {(alias, name) for alias, source in self.sources.items() for key in source.keys for name in key}
        return [*(one for one in found if _place(one) in keys), *(one for one in found if _place(one) not in keys)]

    def _terms(self, left: Iterable[exp.Expr]) -> list[exp.Expr]:
        """What to order by, for each: a floating number by its spelling too, because -0.0 and 0.0 are equal."""
        found: list[exp.Expr] = []
        for one in left:
            type_ = self._type(_place(one)) if isinstance(one, exp.Column) else None
            if _is_in(type_, _WITHOUT_ORDER):
                continue
            found.append(one)
            if _is_in(type_, _FLOATING):
                found.append(exp.cast(one.copy(), "string"))
        return found

    def _reached(self, given: Sequence[exp.Expr]) -> set[Place]:
        reached = {place for one in given if (place := self._settled_place(one)) is not None}
        grown = True
        while grown:
            new = {place for rule in self.rules if rule.given <= reached for place in rule.follows} - reached
            reached |= new
            grown = bool(new)
        return reached

    def _settled_place(self, one: exp.Expr) -> Place | None:
        if isinstance(one, exp.Column):
            return None if _is_in(self._type(_place(one)), _FLOATING) else _place(one)
        is_spelling = (
            isinstance(one, exp.Cast) and isinstance(one.this, exp.Column) and one.to.is_type("text", "string")
        )
        return _place(one.this) if is_spelling and _is_in(self._type(_place(one.this)), _FLOATING) else None

    def _type(self, place: Place) -> str | None:
        source = self.sources.get(place[0])
        return source.types.get(place[1]) if source is not None else None

    def _column(self, place: Place) -> exp.Column:
        return exp.Column(this=exp.to_identifier(place[1], quoted=True), table=exp.to_identifier(place[0], quoted=True))


def rows_of(scope: Scope, known: Mapping[str, Known]) -> OrderedRows:
    """``known``: the stored relations, by folded name."""
    select = scope.expression
    if not isinstance(select, exp.Select) or select.args.get("pivots"):
        raise NotKnown
    sources = _with_sure_keys(select, {a.lower(): _source(node, scope, known) for a, node in _from(select)})
    laterals = select.args.get("laterals") or []
    for lateral in laterals:
        sources[lateral.alias_or_name.lower()] = OrderedSource((), {}, ())
    rules = [*_key_rules(sources), *_equalities(select, sources)]
    groups = _groups(select)
    generates = any(is_generator(node) for item in select.selects for node in item.walk())
    is_plain = not generates and (groups is not None or not laterals)
    return OrderedRows(select, sources, _used(scope, sources), tuple(rules), groups, is_plain)


def keys_of(scope: Scope, known: Mapping[str, Known]) -> tuple[frozenset[str], ...]:
    """Outputs by which the rows of a query are told apart, folded."""
    query = scope.expression
    if isinstance(query, exp.SetOperation):
        everything = frozenset(item.alias_or_name.lower() for item in query.selects)
        return (everything,) if query.args.get("distinct") else ()
    if not isinstance(query, exp.Select):
        return ()
    outputs = {item.alias_or_name.lower(): item.unalias() for item in query.selects}
    if query.args.get("distinct"):
        return (frozenset(outputs),)
    try:
        rows = rows_of(scope, known)
    except NotKnown:
        return ()
    kept = {name: value for name, value in outputs.items() if not value.find(exp.Window, exp.Query)}
    if not rows.is_single(kept.values()):
        return ()
    for name in list(kept):
        others = [value for other, value in kept.items() if other != name]
        if rows.is_single(others):
            del kept[name]
    return (frozenset(kept),)


def _from(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    from_ = select.args.get("from_")
    if from_ is None:
        return
    for node in (from_.this, *(join.this for join in select.args.get("joins") or ())):
        if node.args.get("pivots") or node.args.get("joins") or not node.alias_or_name:
            raise NotKnown
        yield node.alias_or_name, node


def _source(node: exp.Expr, scope: Scope, known: Mapping[str, Known]) -> OrderedSource:
    source = scope.sources.get(node.alias_or_name)
    if isinstance(node, _GENERATED):
        return OrderedSource((), {}, ())
    if isinstance(source, exp.Table):
        relation = known.get(source.name.lower())
        if relation is None:
            raise NotKnown
        return _stored(relation)
    if isinstance(source, Scope):
        if source.expression.find_ancestor(exp.With) is not None and _is_recursive(source.expression):
            raise NotKnown
        return _derived(node, source, known)
    raise NotKnown


def _stored(relation: Known) -> OrderedSource:
    """A key with a NULL tells nothing apart, and one of floating numbers holds two zeroes."""
    types = {column.name.lower(): column.type for column in relation.schema}
    sure = {name.lower() for name in (*relation.constraints.not_null, *relation.constraints.primary_key)}
    floating = {name for name, type_ in types.items() if _is_in(type_, _FLOATING)}
    declared = [frozenset(name.lower() for name in key) for key in relation.constraints.keys]
    declared = [key for key in declared if key <= sure and not key & floating]
    derived = [frozenset(name.lower() for name in key) for key in relation.told_apart_by]
    return OrderedSource(tuple(types), types, (*declared, *derived), tuple(declared))


def _derived(node: exp.Expr, source: Scope, known: Mapping[str, Known]) -> OrderedSource:
    """A subquery or a CTE; names that its alias gives its columns stand for their places."""
    query = source.expression
    if not isinstance(query, exp.Query):
        raise NotKnown
    own = [item.alias_or_name.lower() for item in query.selects]
    alias = node.args.get("alias")
    listed = [item.name.lower() for item in alias.columns] if isinstance(alias, exp.TableAlias) else []
    names = dict(zip(own, listed or own, strict=False))
    types = _types_of(source, known)
    keys = (frozenset(names[name] for name in key) for key in keys_of(source, known))
    return OrderedSource(tuple(names.values()), {names[name]: type_ for name, type_ in types.items()}, tuple(keys))


def _types_of(source: Scope, known: Mapping[str, Known]) -> dict[str, str]:
    """Of the outputs that are columns of stored relations, however deep."""
    query = source.expression
    if not isinstance(query, exp.Select):
        return {}
    try:
        below = {alias.lower(): _source(node, source, known) for alias, node in _from(query)}
    except NotKnown:
        return {}
    found = {}
    for item in query.selects:
        value = item.unalias()
        if isinstance(value, exp.Column) and value.table.lower() in below:
            type_ = below[value.table.lower()].types.get(value.name.lower())
            if type_ is not None:
                found[item.alias_or_name.lower()] = type_
    return found


def _is_recursive(query: exp.Expr) -> bool:
    with_ = query.find_ancestor(exp.With)
    return with_ is not None and bool(with_.args.get("recursive"))


def _with_sure_keys(select: exp.Select, sources: Mapping[str, OrderedSource]) -> dict[str, OrderedSource]:
    """Without the keys that may be NULL where an outer join puts NULLs: the two would look alike."""
    aliases, doubtful = [alias.lower() for alias, _ in _from(select)], set[str]()
    for i, join in enumerate(select.args.get("joins") or (), 1):
        side = (join.side or "").upper() or ("FULL" if (join.kind or "").upper() == "OUTER" else "")
        if side in ("LEFT", "FULL"):
            doubtful.add(aliases[i])
        if side in ("RIGHT", "FULL"):
            doubtful.update(aliases[:i])
    return {
        alias: replace(source, keys=source.sure_keys) if alias in doubtful else source
        for alias, source in sources.items()
    }


def _key_rules(sources: Mapping[str, OrderedSource]) -> Iterator[Implied]:
    """A key determines its row. Also where an outer join puts NULLs: a key has none."""
    for alias, source in sources.items():
        everything = frozenset((alias, name) for name in source.columns)
        for key in source.keys:
            yield Implied(frozenset((alias, name) for name in key), everything)


def _equalities(select: exp.Select, sources: Mapping[str, OrderedSource]) -> Iterator[Implied]:
    """What WHERE and inner joins compare; the condition of an outer join binds only rows that met."""
    where = select.args.get("where")
    conditions = list(conjuncts(where.this)) if where is not None else []
    joins = select.args.get("joins") or []
    # A RIGHT or FULL join adds rows that the joins before it did not see.
    begin = max((i + 1 for i, join in enumerate(joins) if (join.side or "").upper() in ("RIGHT", "FULL")), default=0)
    for join in joins[begin:]:
        if not join.side and (join.kind or "").upper() in ("", "INNER", "CROSS") and join.args.get("on") is not None:
            conditions += conjuncts(join.args["on"])
    for join in joins[begin:]:
        if (join.side or "").upper() == "LEFT":
            yield from _looked_up(join, sources)
    for condition in conditions:
        if isinstance(condition, exp.EQ):
            yield from _equality(condition.this.unnest(), condition.expression.unnest(), sources)


def _looked_up(join: exp.Join, sources: Mapping[str, OrderedSource]) -> Iterator[Implied]:
    """A LEFT JOIN by a key: what the key is compared with decides which row it is, or that there is none. Also where it
    is a SEMI or ANTI one, of which no column is seen above."""
    alias, on = join.this.alias_or_name.lower(), join.args.get("on")
    here: dict[str, exp.Column] = {}
    for condition in conjuncts(on) if on is not None else ():
        sides = [condition.this.unnest(), condition.expression.unnest()] if isinstance(condition, exp.EQ) else []
        if len(sides) != 2 or not all(isinstance(side, exp.Column) for side in sides):
            return
        ours, theirs = sorted(sides, key=lambda side: side.table.lower() == alias)
        type_ = _type_of(ours, sources)
        if ours.table.lower() == alias or not _is_exact(type_) or type_ != _type_of(theirs, sources):
            return
        here[theirs.name.lower()] = ours
    if any(key <= here.keys() for key in sources[alias].sure_keys):
        everything = frozenset((alias, name) for name in sources[alias].columns)
        yield Implied(frozenset(_place(ours) for ours in here.values()), everything)


def _equality(one: exp.Expr, other: exp.Expr, sources: Mapping[str, OrderedSource]) -> Iterator[Implied]:
    """Values of two types may be equal without being the same; so may two floating zeroes."""
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        types = {_type_of(side, sources) for side in (one, other)}
        if len(types) == 1 and _is_exact(next(iter(types))):
            yield Implied(frozenset({_place(one)}), frozenset({_place(other)}))
            yield Implied(frozenset({_place(other)}), frozenset({_place(one)}))
    for column, literal in ((one, other), (other, one)):
        if isinstance(column, exp.Column) and isinstance(literal, exp.Literal):
            type_ = _type_of(column, sources)
            if _is_exact(type_) and (literal.is_string or type_ != "string"):
                yield Implied(frozenset(), frozenset({_place(column)}))


def _type_of(column: exp.Column, sources: Mapping[str, OrderedSource]) -> str | None:
    source = sources.get(column.table.lower())
    return source.types.get(column.name.lower()) if source is not None else None


def _is_exact(type_: str | None) -> bool:
    return type_ is not None and not _is_in(type_, (*_FLOATING, *_WITHOUT_ORDER, "char"))


def _is_in(type_: str | None, words: Iterable[str]) -> bool:
    return type_ is not None and any(word in type_ for word in words)


def _used(scope: Scope, sources: Mapping[str, OrderedSource]) -> tuple[Place, ...]:
    """The columns that outputs, groups and windows use, in the order of FROM and of declaration."""
    select = scope.expression
    assert isinstance(select, exp.Select)
    roots = [*select.selects, *(select.args.get("windows") or ())]
    roots += [select.args[name] for name in ("group", "having", "qualify", "order") if select.args.get(name)]
    within = {id(node) for root in roots for node in root.walk()}
    found = {_place(node) for node in scope.columns if id(node) in within and node.table.lower() in sources}
    ranks = {alias: rank for rank, alias in enumerate(sources)}
    places = {(alias, name): i for alias, source in sources.items() for i, name in enumerate(source.columns)}
    return tuple(sorted(found, key=lambda place: (ranks[place[0]], places.get(place, len(places)), place[1])))


def _groups(select: exp.Select) -> tuple[exp.Expr, ...] | None:
    """The keys of its groups; None where it does not group."""
    group = select.args.get("group")
    if group is None:
        outputs = [item.unalias() for item in select.selects]
        calls = (output for output in outputs if is_aggregate(_without_windows(output)))
        return () if select.args.get("having") or next(calls, None) is not None else None
    if group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
        raise NotKnown
    if group.args.get("all"):
        return tuple(item.unalias() for item in select.selects if not is_aggregate(item) and not item.find(exp.Window))
    return tuple(group.expressions)


def _without_windows(output: exp.Expr) -> exp.Expr:
    """What is aggregated for a window is not what groups rows; its arguments may be."""
    bare = exp.Paren(this=output.copy())
    for window in list(bare.find_all(exp.Window)):
        call = window.this
        while isinstance(call, exp.Filter | exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
            call = call.this
        inner = [child.copy() for child in call.iter_expressions()]
        over = [part.copy() for part in window.args.get("partition_by") or ()]
        order = window.args.get("order")
        over += [item.this.copy() for item in order.expressions] if order is not None else []
        window.replace(exp.Tuple(expressions=[*inner, *over]))
    return bare


def _place(node: exp.Expr) -> Place:
    return (node.table.lower(), node.name.lower()) if isinstance(node, exp.Column) else ("", "")
