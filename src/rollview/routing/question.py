"""A query's text, read far enough to compare it with views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from rollview.algebra.definition import Declared
from rollview.algebra.expressions import column, identifier
from rollview.algebra.resolve import Known
from rollview.algebra.text import render
from rollview.algebra.view import Outline, outline
from rollview.errors import RollviewError
from rollview.matching.flat import Expand, Flat, NotFlat, flatten

_ABOVE = ("order", "limit", "offset")
_OUTPUT = "output "


class NotCompared(Exception):
    """The query cannot be compared with views; says why."""


@dataclass(frozen=True, slots=True)
class Question:
    """``flat``: the query over tables; ``above``: its ORDER BY, LIMIT and OFFSET, over its outputs."""

    read: Outline
    flat: Flat
    above: Mapping[str, exp.Expr]


def question(query: exp.Query, known: Mapping[str, Known], expand: Expand) -> Question:
    """Raises ``NotCompared``."""
    if not isinstance(query, exp.Select):
        raise NotCompared("the query is not one SELECT")
    named, above = _named(query)
    read = {table.name.lower() for table in query.find_all(exp.Table)}
    try:
        made = _outlined(render(named), tuple(relation for name, relation in known.items() if name in read))
    except RollviewError as error:
        raise NotCompared(str(error)) from None
    if made.rel is None:
        raise NotCompared(made.whole_because or "")
    try:
        return Question(made, flatten(made.rel, expand), above)
    except NotFlat as operator:
        raise NotCompared(f"{operator} is not matched with views") from None


@lru_cache(maxsize=256)
def _outlined(text: str, known: tuple[Known, ...]) -> Outline:
    return outline(Declared("query", (), None, {}, text, False), {one.name.lower(): one for one in known})


def _named(query: exp.Select) -> tuple[exp.Select, dict[str, exp.Expr]]:
    """The query with a name for each output and without what stands above its rows, and that over the outputs."""
    made = query.copy()
    items = list(made.expressions)
    names = [_name(item, place) for place, item in enumerate(items)]
    above = {part: made.args[part].pop() for part in _ABOVE if made.args.get(part) is not None}
    order = above.get("order")
    for term in () if order is None else order.expressions:
        term.set("this", _output(term.this, items, names))
    wrapped = [
        item if name is None or isinstance(item, exp.Alias) else exp.Alias(this=item, alias=identifier(name))
        for item, name in zip(items, names, strict=True)
    ]
    made.set("expressions", wrapped)
    return made, above


def _name(item: exp.Expr, place: int) -> str | None:
    """None of a star."""
    if item.is_star and not isinstance(item, exp.Count):
        return None
    return item.alias_or_name or f"{_OUTPUT}{place}"


def _output(term: exp.Expr, items: list[exp.Expr], names: list[str | None]) -> exp.Expr:
    """An ORDER BY term as a column of the result: there a name is that of an output first, then that of a column."""
    if isinstance(term, exp.Literal) and term.is_int:
        place = int(term.this) - 1
        name = names[place] if None not in names and 0 <= place < len(names) else None
    else:
        name = _shown(term, items, names)
    if name is None:
        raise NotCompared("it is ordered by what it does not show")
    return column(None, name)


def _shown(term: exp.Expr, items: list[exp.Expr], names: list[str | None]) -> str | None:
    bare = {one.name.lower() for one in term.find_all(exp.Column) if not one.table}
    outputs = list(zip(items, names, strict=True))
    meant = [(item, name) for item, name in outputs if name is not None and name.lower() in bare]
    if isinstance(term, exp.Column) and meant:
        return meant[0][1] if len(meant) == 1 else None
    if any(not _is_column(item, name) for item, name in meant):
        return None
    return next((name for item, name in outputs if name is not None and item.unalias() == term), None)


def _is_column(item: exp.Expr, name: str | None) -> bool:
    """Whether an output is the column of its name."""
    shown = item.unalias()
    return isinstance(shown, exp.Column) and shown.name.lower() == (name or "").lower()
