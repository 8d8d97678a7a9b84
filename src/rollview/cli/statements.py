"""A text of several SQL statements, cut at its semicolons, and what running them answers.

Law: joined again with semicolons, the pieces are the text; a semicolon inside quotes or a comment cuts nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rollview.cli.answers import StatementAnswer, StatementAnswers, fetch, fetched_rows
from rollview.cli.points import parse_point
from rollview.core.lazy import lazy_module
from rollview.core.states import Rewrite
from rollview.errors import SqlError

if TYPE_CHECKING:
    from rollview.algebra import text as sql_text
    from rollview.results import Answer, Result, StatementResult
    from rollview.warehouse import Warehouse
else:
    sql_text = lazy_module("rollview.algebra.text")


def run_statements(
    warehouse: Warehouse, statements: tuple[str, ...], limit: int | None, allow_unsafe: bool = False
) -> StatementAnswers:
    done = warehouse.sql(*statements, allow_unsafe=allow_unsafe)
    return StatementAnswers(tuple(_answer(result, limit) for result in done))


def _answer(result: StatementResult, limit: int | None) -> StatementAnswer:
    rows = None if result.rows is None else fetch(result.rows, limit)
    return StatementAnswer(result.kind, result.table, result.inserted, result.deleted, result.updated, result.csn, rows)


@dataclass(frozen=True, slots=True)
class QueryWish:
    """What was said about a query's answer; ``explain``: only how it would be found."""

    as_of: str | None
    max_staleness: str | None
    rewrite: Rewrite
    explain: bool


def run_query(
    warehouse: Warehouse, text: str, wish: QueryWish, limit: int | None, note: Callable[[str], None]
) -> Result:
    """The rows, or how they would be found. What was answered, and from what, is noted beside the rows."""
    point = None if wish.as_of is None else parse_point(wish.as_of)
    if point is not None and point.note is not None:
        note(point.note)
    answer = warehouse.query(
        text,
        as_of=None if point is None else point.at,
        max_staleness=wish.max_staleness,
        rewrite=wish.rewrite.value,
        explain=wish.explain,
    )
    if answer.rows is None:
        return answer
    if limit is None or answer.fetch is None:
        note(headline(answer))
        return fetch(answer.rows, limit)
    fetched = answer.fetch(limit + 1)
    assert fetched.answer.rows is not None
    note(headline(fetched.answer))
    if point is None and not fetched.still_valid:
        note("What it rests on has changed since.")
    return fetched_rows(fetched.answer.rows, fetched.rows, limit)


def headline(answer: Answer) -> str:
    """From what a query was answered, and how old that is."""
    relations = ", ".join(f"'{one.relation}' ({one.why})" for one in answer.used) or "no relation"
    old = answer.staleness_seconds
    age = "of unknown age" if old is None else f"{old:.0f} s old"
    valid = answer.valid
    return f"Answered at csn {answer.csn} from {relations}: {age}, valid ({max(0, valid.first - 1)}, {valid.through}]."


def split_statements(text: str) -> tuple[str, ...]:
    return tuple(text[start:end].strip() for start, end in _spans(text))


def is_complete(text: str) -> bool:
    """Whether the last statement has its semicolon, so that a shell need not wait for more."""
    try:
        tokens = sql_text.tokens_of(text)
    except SqlError:
        return False
    return bool(tokens) and tokens[-1][0]


def _spans(text: str) -> list[tuple[int, int]]:
    spans, start, pending = [], 0, False
    for is_cut, begin, end in sql_text.tokens_of(text):
        if is_cut:
            if pending:
                spans.append((start, begin))
            start, pending = end, False
        else:
            pending = True
    return [*spans, (start, len(text))] if pending else spans
