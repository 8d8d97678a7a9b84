"""Window functions and LIMIT over rows that are equal in their order: the order goes on until no tie matters.

Law: rows that were equal in the author's order come in some order anyway; now in one that their columns give. A frame
that takes equal rows together (RANGE) would take others if its order went on, so there the order is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.functions import INSTEAD, SETTLED, function_name, is_sorted
from rollview.algebra.resolve import name_in_text
from rollview.algebra.text import DIALECT, render
from rollview.algebra.tie import Edit, Tie, fields, listed, span_of, without_order
from rollview.algebra.total_order import OrderedRows

_NUMBERING = ("row_number", "ntile", "lag", "lead")
_BY_EQUALS = ("rank", "dense_rank", "percent_rank", "cume_dist")
"""Rows that are equal in the order have one value, whatever the frame says."""
_FIRST = ("first", "first_value", "any_value")
_LAST = ("last", "last_value")
PICKING = (*_FIRST, *_LAST, "nth_value", "collect_list", "array_agg")
_ROWS = "a window frame of ROWS"
_WHOLE = " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_TOGETHER = "rows that are equal in its order belong to its frame together, and come in no order of their own"
_ORDERED_BY = re.compile(r"OVER\s*(?:\(\s*)?(`[^`]*`|\w+)(?:\s*\))?$", re.IGNORECASE)
_UNNAMED = re.compile(r"_col_\d+")


@dataclass(frozen=True, slots=True)
class Frame:
    """Which rows around a row a window function looks at."""

    kind: str
    start: str
    end: str

    @classmethod
    def of(cls, window: exp.Expr) -> Frame:
        spec = window.args.get("spec")
        if spec is None:
            ordered = window.args.get("order") is not None
            return cls("RANGE", "UNBOUNDED PRECEDING", "CURRENT ROW" if ordered else "UNBOUNDED FOLLOWING")
        ends = [
            " ".join(str(spec.args.get(part) or "") for part in (side, f"{side}_side")) for side in ("start", "end")
        ]
        start, end = (end.strip() or "CURRENT ROW" for end in ends)
        return cls(str(spec.args.get("kind")).upper(), start, end)

    @property
    def is_whole(self) -> bool:
        return self.start == "UNBOUNDED PRECEDING" and self.end == "UNBOUNDED FOLLOWING"

    @property
    def counts_rows(self) -> bool:
        return self.kind == "ROWS" and not self.is_whole


def unsettled(node: exp.Expr) -> Tie | None:
    """What leaves a choice where nothing is known of the rows."""
    name = function_name(node) or ""
    if name in SETTLED and not is_sorted(node):
        return Tie(node, name, hint=INSTEAD.get(name))
    if isinstance(node, exp.Window) and Frame.of(node).counts_rows:
        return Tie(node, _ROWS, hint="Write RANGE.")
    return None


def unsettled_limit(node: exp.Expr) -> Tie:
    reason = "without a total order, which rows it takes is chance"
    return Tie(node, "LIMIT", reason=reason, hint="Order by every column of the result.")


def tied_window(window: exp.Window, rows: OrderedRows, text: str) -> Tie | None:
    """The choice that a window function leaves, if it leaves one."""
    meant = _meant(window, rows.select)
    call = next(window.this.find_all(exp.Func))
    name, frame = function_name(call) or "", Frame.of(meant)
    if name in _BY_EQUALS or (not frame.counts_rows and (name not in (*_NUMBERING, *PICKING) or is_sorted(call))):
        return None
    ordered = [item.this for item in meant.args["order"].expressions] if meant.args.get("order") else []
    if not ordered and frame.kind == "RANGE" and not frame.is_whole:
        # Spark refuses it; an order would make another query of it.
        return None
    given = [*(meant.args.get("partition_by") or ()), *ordered]
    if rows.settles(given):
        return None
    shown = _ROWS if name not in (*_NUMBERING, *PICKING) else name
    refused = Tie(window, shown, hint="Write RANGE." if shown == _ROWS else INSTEAD.get(name))
    terms = rows.missing(given)
    if terms is None:
        return replace(refused, reason=without_order(rows, given))
    if not ordered and name in _NUMBERING:
        return refused
    by = listed(rows, terms)
    ignoring = window.find(exp.IgnoreNulls) is not None or len(list(call.iter_expressions())) > 1
    if name in _LAST and frame.kind == "RANGE" and frame.end == "CURRENT ROW" and not ignoring:
        return replace(refused, edit=_last_of_equals(window, meant, call, rows, terms), by=by)
    if not (name in _NUMBERING or frame.kind == "ROWS" or frame.is_whole):
        simple = frame.start == "UNBOUNDED PRECEDING" and frame.end == "CURRENT ROW"
        if not (name in _FIRST and simple and not ignoring):
            return Tie(window, name, reason=_TOGETHER, hint="Write ROWS BETWEEN … in the window.")
    return replace(refused, edit=_ordered(window, meant, by, text), by=by)


def _meant(window: exp.Window, select: exp.Select) -> exp.Expr:
    """The window itself, or the one that WINDOW gives its name to."""
    alias = window.args.get("alias")
    named = (item for item in select.args.get("windows") or () if alias and item.name.lower() == alias.name.lower())
    return next(named, window)


def _ordered(window: exp.Window, meant: exp.Expr, by: str, text: str) -> Edit:
    """The window with its order, going on with ``by``."""
    first, behind = span_of(meant)
    order = meant.args.get("order")
    if order is not None:
        edit = Edit(span_of(order)[1], span_of(order)[1], f", {by}")
    else:
        at, frame = _before_frame(text, window.this, meant, behind)
        edit = Edit(at, at, f" ORDER BY {by}{frame}")
    if meant is window:
        return edit
    # Others may go by the same name, and mean equal rows by its order.
    whole = edit.applied(text)[first : behind + len(edit.text)]
    own = span_of(window)
    over = text[own[0] : own[1]]
    found = _ORDERED_BY.search(over)
    assert found is not None, "a window is named behind OVER"
    return Edit(own[0] + found.start(), own[1], f"OVER {whole[whole.index('(') :]}")


def _before_frame(text: str, call: exp.Expr, meant: exp.Expr, behind: int) -> tuple[int, str]:
    """Where an order goes in a window without one, and the frame that it needs."""
    if meant.args.get("spec") is None:
        return behind - 1, _WHOLE
    begin = span_of(meant)[0]
    tokens = DIALECT().tokenize(text[begin:behind])
    frames = [token.start for token in tokens if token.text.upper() in ("ROWS", "RANGE")]
    return begin + frames[-1], " "


def _last_of_equals(
    window: exp.Window, meant: exp.Expr, call: exp.Expr, rows: OrderedRows, terms: Sequence[exp.Expr]
) -> Edit:
    """The last row of a frame that ends with the row's equals is the last of them."""
    equal = [*(meant.args.get("partition_by") or ()), *(item.this for item in meant.args["order"].expressions)]
    row = fields(rows, terms, rows.text(next(iter(call.iter_expressions()))))
    return Edit(*span_of(window), f"(MAX({row}) OVER (PARTITION BY {listed(rows, equal)})).v")


def tied_limit(query: exp.Query, rows: OrderedRows | None) -> Tie | None:
    """The choice that LIMIT, OFFSET or FETCH leaves. ``rows``: of a SELECT, where they are known."""
    limits = [query.args[name] for name in ("limit", "offset", "fetch") if query.args.get(name)]
    if not limits:
        return None
    order = query.args.get("order")
    items = [item.this for item in order.expressions] if order is not None else []
    by_all = len(items) == 1 and isinstance(items[0], exp.Var)
    if by_all:
        # ORDER BY ALL: by each output in its place; nothing can stand behind it
        items = [exp.Literal.number(place) for place in range(1, len(query.selects) + 1)]
    left = list(_open_outputs(query, rows, items))
    if not left:
        return None
    by = ", ".join(_term(output, rows, items) for output in left)
    refused = unsettled_limit(limits[0])
    has_order = rows is None or all(rows.has_order(output.unalias()) for output in left)
    if query.args.get("sort") or query.args.get("cluster") or by_all or not has_order:
        return refused
    if order is not None:
        at = span_of(order)[1]
        return replace(refused, edit=Edit(at, at, f", {by}"), by=by)
    at = min(span_of(limit)[0] for limit in limits)
    return replace(refused, edit=Edit(at, at, f"ORDER BY {by} "), by=by)


def _open_outputs(query: exp.Query, rows: OrderedRows | None, items: list[exp.Expr]) -> Iterator[exp.Expr]:
    """Outputs in which rows that are equal in the order may differ; each that is found is ordered by from then on."""
    outputs = list(query.selects)
    by_name = {name.lower(): output for output in outputs for name in (output.alias_or_name, name_in_text(output))}
    given = [_meant_output(item, outputs, by_name) for item in items]
    single = rows is not None and rows.is_single(given)
    named = [_named_output(item, outputs, by_name) for item in items]
    for output in outputs:
        value = output.unalias()
        if rows is not None:
            known = rows.determines(given, value)
        else:
            # what is one expression in a SELECT may be two in another that its rows are put together with
            same = isinstance(query, exp.Select) and render(value) in {render(one) for one in given}
            known = same or any(output is one for one in named)
        if single or known:
            continue
        yield output
        given.append(value)


def _named_output(item: exp.Expr, outputs: list[exp.Expr], by_name: dict[str, exp.Expr]) -> exp.Expr | None:
    """The output that an item of ORDER BY is, by its name or place."""
    if isinstance(item, exp.Literal) and item.is_int and 0 < int(item.name) <= len(outputs):
        return outputs[int(item.name) - 1]
    return by_name.get(item.name.lower()) if isinstance(item, exp.Column) and not item.table else None


def _meant_output(item: exp.Expr, outputs: list[exp.Expr], by_name: dict[str, exp.Expr]) -> exp.Expr:
    """What an item of ORDER BY means: an output by its name or place, or a value of the row."""
    found = _named_output(item, outputs, by_name)
    if found is not None:
        return found.unalias()

    def value(node: exp.Expr) -> exp.Expr:
        is_output = isinstance(node, exp.Column) and not node.table and node.name.lower() in by_name
        return by_name[node.name.lower()].unalias().copy() if is_output else node

    return item.copy().transform(value)


def _term(output: exp.Expr, rows: OrderedRows | None, items: list[exp.Expr]) -> str:
    name = name_in_text(output)
    is_unnamed = rows is not None and _UNNAMED.fullmatch(name) is not None
    term = rows.text(output.unalias()) if rows and is_unnamed else exp.to_identifier(name, quoted=True).sql("spark")
    if rows is None or not rows.is_floating(output.unalias()):
        return term
    spelled = f"CAST({term} AS STRING)"
    return spelled if _is_ordered(output, items) else f"{term}, {spelled}"


def _is_ordered(output: exp.Expr, items: list[exp.Expr]) -> bool:
    named = {output.alias_or_name.lower(), name_in_text(output).lower()}
    return any(render(item) == render(output.unalias()) or item.name.lower() in named for item in items)
