"""Texts that differ in values only, which columns are compared with, taken for one.

Law: a value is lifted out of a text only where nothing but itself stands on that side of a comparison in WHERE, and
where every value of its kind is written and typed alike. What holds for the text with an unknown in the value's place
holds for the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from rollview.algebra.text import DIALECT

_COMPARED = {TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_ENDS = {TokenType.AND, TokenType.OR, TokenType.R_PAREN}
_BEHIND_WHERE = {TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT}
_STRING, _DAY, _INT = re.compile(r"'[^'\\\n]*'"), re.compile(r"'\d{4}-\d{2}-\d{2}'"), re.compile(r"0|[1-9]\d{0,8}")

Value = tuple[str, str]
"""Its type and how it is written."""


@dataclass(frozen=True, slots=True)
class LiftedText:
    """``pieces`` of a text, with one of ``values`` between each two of them."""

    pieces: tuple[str, ...]
    values: tuple[Value, ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The same of all texts that differ in values only; where two values are the same, they are in all of them."""
        numbers = {value: number for number, value in enumerate(dict.fromkeys(self.values))}
        return self.pieces, tuple((value[0], numbers[value]) for value in self.values)

    @property
    def text(self) -> str:
        """With an unknown for each value."""
        unknown = (render_unknown(self._number(value), value) for value in self.values)
        return self.pieces[0] + "".join(part for both in zip(unknown, self.pieces[1:], strict=True) for part in both)

    def without_values(self, query: exp.Query) -> exp.Query:
        """The query, made from the text, with the same unknowns; as it is where a value does not stand alone."""
        made = query.copy()
        for node in list(made.find_all(*_COMPARISONS)):
            if node.find_ancestor(exp.Where) is not None:
                for side in list(node.iter_expressions()):
                    value = _value_of(side)
                    if value in self.values:
                        side.replace(exp.Var(this=render_unknown(self._number(value), value)))
        return made

    def _number(self, value: Value) -> int:
        return list(dict.fromkeys(self.values)).index(value)


def render_unknown(number: int, value: Value) -> str:
    """Spark knows nothing of it but its type, and that it is not another one."""
    return f"CAST(raise_error('{f'value {number}'.encode().hex()}') AS {value[0]})"


def lift(text: str) -> LiftedText | None:
    """None where no value can be lifted."""
    tokens = DIALECT().tokenize(text)
    found = list(_found(text, _in_where(tokens)))
    if not found:
        return None
    ends = [0, *(behind for _, behind, _ in found)]
    begins = [*(first for first, _, _ in found), len(text)]
    pieces = tuple(text[end:begin] for end, begin in zip(ends, begins, strict=True))
    return LiftedText(pieces, tuple(value for _, _, value in found))


def _in_where(tokens: Sequence[Any]) -> list[Any]:
    """The tokens of a query's one WHERE; none where queries are nested, or it is that of an aggregate."""
    kinds = [token.token_type for token in tokens]
    if kinds.count(TokenType.SELECT) != 1 or kinds.count(TokenType.WHERE) != 1:
        return []
    first = kinds.index(TokenType.WHERE) + 1
    if kinds[:first].count(TokenType.L_PAREN) != kinds[:first].count(TokenType.R_PAREN):
        return []
    behind = (place for place in range(first, len(kinds)) if kinds[place] in _BEHIND_WHERE)
    return list(tokens[first : next(behind, len(kinds))])


def _found(text: str, tokens: Sequence[Any]) -> Iterator[tuple[int, int, Value]]:
    """Where values stand alone behind a comparison."""
    for place in range(1, len(tokens)):
        if tokens[place - 1].token_type in _COMPARED:
            last = place + (tokens[place].token_type is TokenType.DATE)
            if last < len(tokens) and (last + 1 == len(tokens) or tokens[last + 1].token_type in _ENDS):
                written = text[tokens[last].start : tokens[last].end + 1]
                type_ = _type_of(written, is_day=last > place)
                if type_ is not None:
                    yield tokens[place].start, tokens[last].end + 1, (type_, written)


def _type_of(written: str, *, is_day: bool) -> str | None:
    if is_day:
        return "DATE" if _DAY.fullmatch(written) and _is_day(written[1:-1]) else None
    if _STRING.fullmatch(written):
        return "STRING"
    return "INT" if _INT.fullmatch(written) else None


def _is_day(written: str) -> bool:
    try:
        return date.fromisoformat(written).year > 0
    except ValueError:
        return False


def _value_of(node: exp.Expr) -> Value | None:
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        return ("DATE", f"'{node.name}'") if node.to.is_type("DATE") else None
    if isinstance(node, exp.Literal):
        return ("STRING", f"'{node.name}'") if node.is_string else ("INT", node.name)
    return None
