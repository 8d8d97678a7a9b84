"""A text of several SQL statements, cut at its semicolons, and what running them answers.

Law: joined again with semicolons, the pieces are the text; a semicolon inside quotes or a comment cuts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.cli.answers import StatementAnswer, StatementAnswers, fetch
from rollview.core.lazy import lazy_module
from rollview.errors import SqlError
from rollview.results import StatementResult

if TYPE_CHECKING:
    from rollview.algebra import text as sql_text
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
