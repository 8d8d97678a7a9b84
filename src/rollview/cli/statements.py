"""A text of several SQL statements, cut at its semicolons, and what running them answers.

Law: joined again with semicolons, the pieces are the text; a semicolon inside quotes or a comment cuts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.cli.answers import StatementAnswer, StatementAnswers, fetch
from rollview.errors import SqlError
from rollview.results import StatementResult

if TYPE_CHECKING:
    from rollview.warehouse import Warehouse


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
        tokens = _tokens(text)
    except SqlError:
        return False
    return bool(tokens) and tokens[-1][0]


def _spans(text: str) -> list[tuple[int, int]]:
    spans, start, pending = [], 0, False
    for is_cut, begin, end in _tokens(text):
        if is_cut:
            if pending:
                spans.append((start, begin))
            start, pending = end, False
        else:
            pending = True
    return [*spans, (start, len(text))] if pending else spans


def _tokens(text: str) -> list[tuple[bool, int, int]]:
    """(is it a semicolon, first offset, offset behind) of each token."""
    from sqlglot.dialects import Spark
    from sqlglot.errors import TokenError
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = Spark().tokenize(text)
    except TokenError as cause:
        raise SqlError(f"The SQL text cannot be read: {cause}") from None
    return [(token.token_type is TokenType.SEMICOLON, token.start, token.end + 1) for token in tokens]
