"""The general mechanism for operators that are not linear: recompute for the affected keys, at each csn that touched
them.

Law: let f be an operator that never mixes rows of different keys. For a key k touched at
csns c1 < c2 < … of (a, b], with f_k(t) its result for k on the inputs at t:

    Δf = Σ_k Σ_i  [ f_k(ci) at ci ]  −  [ f_k(c(i-1)) at ci ],     c0 = a

A *moment* is one (k, ci) with the csn until which it holds. ``evaluate`` is the operator itself, written over rows that
carry the moment they belong to; it must keep moments apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rollview.algebra import zeroes
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    bag_union,
    big,
    broadcast,
    call,
    cast,
    column,
    come_and_go,
    each,
    named,
    number,
    over,
    same_value,
    select,
    table,
)
from rollview.algebra.operator import Operator
from rollview.algebra.script import Script
from rollview.core.names import COUNT, CSN

_COPY = "_rv_copy"

Keys = Sequence[str]
"""For one input: which of its columns are the key, in the order common to all inputs."""

Evaluate = Callable[[Sequence[str], str], exp.Query]
"""Names of the inputs at their moments, and of the moments; returns the operator's columns and the moment."""


def delta(script: Script, rel: Operator, inputs: Sequence[tuple[Operator, Keys]], evaluate: Evaluate) -> exp.Query:
    times = moments(script, inputs)
    at_moments = [_at_moments(script, side, keys, times) for side, keys in inputs]
    result = script.add("result", evaluate(at_moments, times))
    return come_and_go(result, rel.columns, AT, UNTIL)


def old_rows(script: Script, rel: Operator) -> str:
    """The old state of an input as plain rows: netted, one row per copy."""
    netted = zeroes.net(rel, select().from_(table(script.old(rel))), None, [])
    return script.add("rows", _copies(netted, [column(None, name) for name in rel.columns]))


def moments(script: Script, inputs: Sequence[tuple[Operator, Keys]]) -> str:
    key_names = [key_name(i) for i in range(len(inputs[0][1]))]
    sides = [
        _touched(script, side, [named(column(None, name), key) for name, key in zip(keys, key_names, strict=True)])
        for side, keys in inputs
    ]
    touched = script.add("touched", bag_union(sides))
    keys = [column(None, key) for key in key_names]
    times = select(*keys, named(each(column(None, CSN), big(0)), CSN)).from_(table(touched))
    distinct = script.add("times", select(*keys, column(None, CSN)).distinct().from_(times.subquery("u")))
    until = over(exp.Lead(this=column(None, CSN)), keys, column(None, CSN))
    query = select(*keys, named(column(None, CSN), AT), named(until, UNTIL)).from_(table(distinct))
    return script.add("moments", query)


def _touched(script: Script, side: Operator, keys: Sequence[exp.Expr]) -> exp.Select:
    """The keys that changed. A side that did not change gives no rows but its types, so that equal keys are one key."""
    if script.changed(side):
        return select(*keys, column(None, CSN)).distinct().from_(table(script.delta(side)))
    return select(*keys, named(big(0), CSN)).from_(table(script.old(side))).where(exp.false(), copy=False)


def _at_moments(script: Script, side: Operator, keys: Keys, moments: str) -> str:
    """The rows of an input at each moment of their key; only rows whose key was touched are read."""
    rows = script.timed(side)
    matches = [same_value(column("s", name), column("m", key_name(i))) for i, name in enumerate(keys)]
    in_time = exp.LTE(this=column("s", CSN), expression=column("m", AT))
    joined = select().from_(table(rows, "s")).join(table(moments, "m"), on=all_of([*matches, in_time]), copy=False)
    query = zeroes.net(side, joined, "s", [column("m", AT), column("m", UNTIL)])
    if script.small:
        broadcast(query, "m")
    return script.add("at_moments", _copies(query, [column(None, name) for name in side.columns], (AT, UNTIL)))


def timed_of_touched(script: Script, side: Operator, inputs: Sequence[tuple[Operator, Keys]], keys: Keys) -> exp.Query:
    """As ``script.timed``; of the old rows at least those whose key was touched by one of the inputs, and all where
    they are few."""
    if not keys or script.reads_few(side):
        return select(*[column(None, name) for name in (*side.columns, COUNT, CSN)]).from_(table(script.timed(side)))
    columns = [column("s", name) for name in side.columns]
    matches = [same_value(column("s", name), column("m", key_name(i))) for i, name in enumerate(keys)]
    state = select(*columns, column("s", COUNT), named(big(0), CSN)).from_(table(script.old(side), "s"))
    state = state.join(table(touched(script, inputs), "m"), on=all_of(matches), join_type="LEFT SEMI", copy=False)
    if script.small:
        broadcast(state, "m")
    if not script.changed(side):
        return state
    names = [column(None, name) for name in (*side.columns, COUNT, CSN)]
    return bag_union([state, select(*names).from_(table(script.delta(side)))])


def touched(script: Script, inputs: Sequence[tuple[Operator, Keys]]) -> str:
    """The keys that changed, each once for each input that changed it."""
    sides = [
        select(*[named(column(None, name), key_name(i)) for i, name in enumerate(keys)])
        .distinct()
        .from_(table(script.delta(side)))
        for side, keys in inputs
        if script.changed(side)
    ]
    which = frozenset((side, tuple(keys)) for side, keys in inputs)
    return script.once(("touched", which), "touched", lambda: bag_union(sides))


def _copies(netted: exp.Select, columns: Sequence[exp.Column], extra: Sequence[str] = ()) -> exp.Select:
    """One row per copy of each row that is there."""
    kept = [*columns, *[column(None, name) for name in extra]]
    counted = select(
        *kept, named(call("explode", call("sequence", big(1), cast(column(None, COUNT), "bigint"))), _COPY)
    )
    present = exp.GT(this=column(None, COUNT), expression=number(0))
    expanded = counted.from_(netted.subquery("n")).where(present, copy=False)
    return select(*kept).from_(expanded.subquery("c"))


def key_name(i: int) -> str:
    return f"_rv_key{i}"
