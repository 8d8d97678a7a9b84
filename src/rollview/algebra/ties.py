"""Where a text leaves a choice, one is made: rows that are equal in an order are told apart by what else they are.

Law: the text that is made is one whose rows the author's text allows, and it leaves no choice. It is what Spark
evaluates from then on, for a refresh, a recomputation and ``verify`` alike. What no order settles is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from rollview.algebra.definition import Declared
from rollview.algebra.functions import SETTLED, check_determined, function_name, refusal
from rollview.algebra.resolve import Known, Resolved, resolve
from rollview.algebra.text import place_of
from rollview.algebra.tie import Tie
from rollview.algebra.tied_calls import tied_call, window_of
from rollview.algebra.tied_rows import PICKING, tied_limit, tied_window, unsettled, unsettled_limit
from rollview.algebra.total_order import NotKnown, OrderedRows, keys_of, rows_of
from rollview.errors import NotDeterministic, Unsupported

TIES, REFUSE, SETTLE = "rollview.ties", "refuse", "settle"
_MOST = 50
_LIMITS = (exp.Limit, exp.Offset, exp.Fetch)


@dataclass(frozen=True, slots=True)
class SettledQuery:
    """A query that leaves no choice: ``text`` is it; ``notes`` say what was chosen."""

    resolved: Resolved
    text: str
    notes: tuple[str, ...]


def settled(declared: Declared, known: Mapping[str, Known]) -> SettledQuery:
    """The view's query, with what decides between equal rows written into it."""
    what = f"View '{declared.name}'"
    resolved = resolve(declared.query, known, declared.columns, what)
    check_determined(resolved.query)
    text, notes = declared.query, list[str]()
    refuses = _refuses(declared)
    while (choice := next(_choices(resolved, text), None)) is not None:
        if choice.edit is None or refuses or len(notes) == _MOST:
            raise _refused(replace(choice, hint=_or_settled(choice.hint)) if refuses and choice.edit else choice)
        notes.append(_note(choice))
        text = choice.edit.applied(text)
        resolved = resolve(text, known, declared.columns, what)
    return SettledQuery(resolved, text, tuple(notes))


def _or_settled(hint: str | None) -> str:
    return f"{hint or 'Make its order total.'} Without '{TIES}' = '{REFUSE}' rollview chooses, and says how."


def _refuses(declared: Declared) -> bool:
    wanted = declared.properties.get(TIES, SETTLE)
    if wanted not in (SETTLE, REFUSE):
        raise Unsupported(f"View '{declared.name}': '{TIES}' is '{wanted}'.", hint=f"Write '{SETTLE}' or '{REFUSE}'.")
    return wanted == REFUSE


def told_apart_by(resolved: Resolved) -> tuple[tuple[str, ...], ...]:
    """Outputs of the query in which no two of its rows are equal."""
    *_, top = traverse_scope(resolved.query)
    spelled = {name.lower(): name for name in resolved.outputs}
    return tuple(
        tuple(spelled[name] for name in sorted(key)) for key in keys_of(top, _known(resolved)) if key <= spelled.keys()
    )


def _choices(resolved: Resolved, text: str) -> Iterator[Tie]:
    known, seen = _known(resolved), set[int]()
    for scope in traverse_scope(resolved.query):
        rows = _rows(scope, known)
        for node in scope.walk():
            seen.add(id(node))
            choice = _choice(node, rows, text)
            if choice is not None:
                yield choice
        query = scope.expression
        seen.update(id(limit) for limit in query.args.values() if isinstance(limit, _LIMITS))
        if isinstance(query, exp.Query) and (choice := tied_limit(query, rows)) is not None:
            yield choice

    # What stands beside all SELECTs, as a LIMIT behind parentheses does.
    for node in resolved.query.walk():
        if id(node) not in seen:
            tie = unsettled_limit(node) if isinstance(node, _LIMITS) else unsettled(node)
            yield from () if tie is None else (tie,)


def _choice(node: exp.Expr, rows: OrderedRows | None, text: str) -> Tie | None:
    if rows is None:
        return unsettled(node)
    if isinstance(node, exp.Window):
        return None if isinstance(node.this, exp.Identifier) else tied_window(node, rows, text)
    if not isinstance(node, exp.Func):
        return None
    window = window_of(node)
    if window is None:
        return tied_call(node, replace(rows, groups=None), rows.groups or (), text)
    goes_by_order = function_name(node) in PICKING
    return None if goes_by_order else tied_call(node, rows, tuple(window.args.get("partition_by") or ()), text)


def _rows(scope: Scope, known: Mapping[str, Known]) -> OrderedRows | None:
    try:
        return rows_of(scope, known)
    except NotKnown:
        return None


def _known(resolved: Resolved) -> dict[str, Known]:
    return {relation.name.lower(): relation for relation in resolved.reads}


def _note(choice: Tie) -> str:
    line, _ = place_of(choice.node)
    where = f" (line {line})" if line else ""
    name = choice.name.upper() if choice.name in SETTLED else choice.name
    return f"{name}{where}: where its order leaves a choice, rows are taken by {choice.by}"


def _refused(choice: Tie) -> Exception:
    return refusal(NotDeterministic, choice.node, choice.name, choice.reason, choice.hint)
