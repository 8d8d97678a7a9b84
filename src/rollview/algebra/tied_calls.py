"""Aggregates whose value depends on which row comes first, written so that it does not.

Law: the rows of a group are taken in the order of the columns that the SELECT uses. The value is one that the call may
have, and several calls of one SELECT look at the rows in the same order, so that what belongs together stays together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp

from rollview.algebra.functions import INSTEAD, function_name, is_sorted
from rollview.algebra.text import DIALECT
from rollview.algebra.tie import Edit, Tie, fields, listed, span_of, without_order
from rollview.algebra.total_order import OrderedRows

Rule = Callable[["TiedCall"], Tie | None]
_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


@dataclass(frozen=True, slots=True)
class TiedCall:
    """A call over the rows of a group, or of a window; ``text``: all of the author's."""

    call: exp.Expr
    name: str
    rows: OrderedRows
    given: tuple[exp.Expr, ...]
    text: str

    @property
    def arguments(self) -> list[exp.Expr]:
        match list(self.call.iter_expressions()):
            case [exp.Distinct() as listed, *_]:
                return list(listed.expressions)
            case found:
                return found

    @property
    def is_distinct(self) -> bool:
        return any(isinstance(part, exp.Distinct) for part in self.call.iter_expressions())

    @property
    def whole(self) -> exp.Expr:
        """The call with its FILTER, WITHIN GROUP and OVER."""
        node = self.call
        while isinstance(node.parent, (*_AROUND, exp.Window)) and node.arg_key == "this":
            node = node.parent
        return node

    @property
    def skips_nulls(self) -> bool:
        told = len(self.arguments) > 1 and self.arguments[1].sql().lower() == "true"
        return told or isinstance(self.call.parent, exp.IgnoreNulls) or self.whole.find(exp.IgnoreNulls) is not None

    def choice(self, call: str, terms: tuple[exp.Expr, ...] | None, *, wrapped: str = "{}") -> Tie:
        """``call`` in the place of this one, ``wrapped`` with all that follows it."""
        if terms is None:
            return replace(self.refused(), reason=without_order(self.rows, self.given))
        _, behind = span_of(self.call)
        begin, end = span_of(self.whole)
        rest = _without_nulls_words(self.text[behind:end])
        text = wrapped.format(f"{call}{rest}")
        return replace(self.refused(), edit=Edit(begin, end, text), by=listed(self.rows, terms))

    def refused(self) -> Tie:
        return Tie(self.call, self.name, hint=INSTEAD.get(self.name))

    def argument(self, place: int) -> str:
        return self.rows.text(self.arguments[place])


def tied_call(call: exp.Expr, rows: OrderedRows, given: tuple[exp.Expr, ...], text: str) -> Tie | None:
    """The choice that a call leaves, if it leaves one. ``given``: what the rows of a group have in common."""
    name = function_name(call)
    rule = _RULES.get(name or "")
    if rule is None or name is None:
        return None
    return rule(TiedCall(call, name, rows, given, text))


def window_of(call: exp.Expr) -> exp.Window | None:
    """The window that a call is evaluated over."""
    node = call
    while isinstance(node.parent, _AROUND) and node.arg_key == "this":
        node = node.parent
    return node.parent if isinstance(node.parent, exp.Window) and node.arg_key == "this" else None


def _first(tied: TiedCall) -> Tie | None:
    """FIRST and its like: the first row in the order of its columns; LAST: the last one."""
    if tied.rows.settles(tied.given):
        return None
    terms = tied.rows.missing(tied.given)
    x = tied.argument(0)
    extreme = "MAX" if tied.name.startswith("last") else "MIN"
    if terms == (tied.arguments[0],):
        return tied.choice(f"{extreme}({x})", terms)
    row = fields(tied.rows, terms or (), x)
    if tied.skips_nulls:
        row = f"IF(ISNULL({x}), NULL, {row})"
    return tied.choice(f"{extreme}({row})", terms, wrapped="({}).v")


def _extreme_by(tied: TiedCall) -> Tie | None:
    given = (*tied.given, tied.arguments[1])
    if tied.rows.settles(given):
        return None
    terms = tied.rows.missing(given)
    x, y = tied.argument(0), tied.argument(1)
    row = f"IF(ISNULL({y}), NULL, {fields(tied.rows, (tied.arguments[1], *(terms or ())), x)})"
    extreme = "MAX" if tied.name == "max_by" else "MIN"
    return tied.choice(f"{extreme}({row})", terms, wrapped="({}).v")


def _collected(tied: TiedCall) -> Tie | None:
    x = tied.arguments[0]
    if is_sorted(tied.call) or tied.rows.settles(tied.given):
        return None
    first, behind = span_of(tied.call)
    own = tied.text[first:behind]
    terms = tied.rows.missing(tied.given)
    if tied.name == "collect_set" or tied.is_distinct or (terms is not None and [x] == list(terms)):
        return tied.choice(own, (x,), wrapped="SORT_ARRAY({})")
    row = f"IF(ISNULL({tied.argument(0)}), NULL, {fields(tied.rows, terms or (), tied.argument(0))})"
    return tied.choice(f"COLLECT_LIST({row})", terms, wrapped="SORT_ARRAY({}).v")


def _mode(tied: TiedCall) -> Tie | None:
    if len(tied.arguments) != 1:
        return None if not tied.arguments or tied.arguments[1].sql().lower() == "true" else tied.refused()
    return tied.choice(f"{tied.name.upper()}({tied.argument(0)}, TRUE)", (tied.arguments[0],))


def _joined_text(tied: TiedCall) -> Tie | None:
    """LISTAGG: in an order of its own, or in that which WITHIN GROUP begins."""
    within = tied.call.find_ancestor(exp.WithinGroup)
    within = within if within is not None and within.this is tied.call else None
    order = within.expression if within is not None else None
    ordered = [item.this for item in order.expressions] if order is not None else []
    if tied.is_distinct:
        return None if ordered else _appended_order(tied, (tied.arguments[0],), order)
    if tied.rows.settles((*tied.given, *ordered)):
        return None
    return _appended_order(tied, tied.rows.missing((*tied.given, *ordered)), order)


def _appended_order(tied: TiedCall, terms: tuple[exp.Expr, ...] | None, order: exp.Expr | None) -> Tie:
    if terms is None:
        return tied.refused()
    by = listed(tied.rows, terms)
    if order is not None:
        end = span_of(order)[1]
        return replace(tied.refused(), edit=Edit(end, end, f", {by}"), by=by)
    end = span_of(tied.call)[1]
    return replace(tied.refused(), edit=Edit(end, end, f" WITHIN GROUP (ORDER BY {by})"), by=by)


def _without_nulls_words(rest: str) -> str:
    """IGNORE NULLS and RESPECT NULLS are said by the new call itself."""
    for word, nulls in pairwise(DIALECT().tokenize(rest)):
        if word.text.upper() in ("IGNORE", "RESPECT") and nulls.text.upper() == "NULLS":
            return rest[: word.start].rstrip() + rest[nulls.end + 1 :]
    return rest


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("first", "first_value", "any_value", "last", "last_value"), _first),
    **dict.fromkeys(("max_by", "min_by"), _extreme_by),
    **dict.fromkeys(("collect_list", "array_agg", "collect_set"), _collected),
    **dict.fromkeys(("listagg", "string_agg"), _joined_text),
    "mode": _mode,
}
