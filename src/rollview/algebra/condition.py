"""A condition over the columns of one table, of a kind that every engine understands alike.

Law: a condition here has Spark's meaning with nothing left to a session, a collation or a float: columns are compared
with constants of their own type, text by its bytes, and what is unknown because of a NULL is not fulfilled. Whatever
else a condition might say is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TypeVar

from sqlglot import exp

from rollview.algebra.text import parse_one, place_of, render
from rollview.core.schema import Column, Schema
from rollview.errors import NotFound, Unsupported

_T = TypeVar("_T")

Value = bool | int | Decimal | str | date | datetime


@dataclass(frozen=True, slots=True)
class Compare:
    """``operator`` is one of = < <= > >=; unknown where the column is NULL."""

    column: Column
    operator: str
    value: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    column: Column


@dataclass(frozen=True, slots=True)
class Not:
    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """AND; true without parts."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """OR; false without parts."""

    parts: tuple[Condition, ...]


Condition = Compare | IsNull | Not | AllOf | AnyOf

INTEGERS = ("tinyint", "smallint", "int", "integer", "bigint")
_WIDEST = 38
_DIGITS_OF_INT = 10
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_NUMBER = re.compile(r"\d+|\d*\.\d+|\d+\.")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_ZONE = re.compile(r"(Z|[+-]\d\d:\d\d)$")
_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
}
"""As written, and with the sides changed."""

_HINT = (
    "Compare columns with constants of their own type (integers, decimals, text, DATE '…', TIMESTAMP '…Z', "
    "TIMESTAMP_NTZ '…', TRUE), with IN, BETWEEN and IS NULL, and join such comparisons by AND, OR and NOT."
)


def condition(text: str | exp.Expr, schema: Schema, table: str) -> Condition:
    """The condition that the text says of a table with these columns."""
    return _Reading(schema, table).read(parse_one(text) if isinstance(text, str) else text)


def columns_of(what: Condition) -> Iterator[str]:
    match what:
        case Compare() | IsNull():
            yield what.column.name
        case Not():
            yield from columns_of(what.part)
        case AllOf() | AnyOf():
            for part in what.parts:
                yield from columns_of(part)


def spelled(what: Condition, column: Callable[[str], str | None], *, exactly: bool = False) -> str | None:
    """The condition for another database's SQL, or a weaker one: what it means the same there by, which is integers.

    ``column``: how a column is written there; None for one that is no plain integer. None if nothing can be said.
    """
    match what:
        case Compare(Column(name, type_), operator, value):
            text = column(name) if type_ in INTEGERS else None
            return None if text is None else f"{text} {operator} {int(value)}"  # type: ignore[arg-type]
        case IsNull(Column(name, type_)):
            text = column(name) if type_ in INTEGERS else None
            return None if text is None else f"{text} IS NULL"
        case Not():
            text = spelled(what.part, column, exactly=True)
            return None if text is None else f"NOT ({text})"
        case AllOf():
            said = [spelled(part, column, exactly=exactly) for part in what.parts]
            return None if exactly and None in said else " AND ".join(f"({one})" for one in said if one) or "1 = 1"
        case AnyOf():
            said = [spelled(part, column, exactly=exactly) for part in what.parts]
            return None if None in said else " OR ".join(f"({one})" for one in said) or "1 = 0"


@dataclass(frozen=True, slots=True)
class _Reading:
    schema: Schema
    table: str

    def read(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.And():
                return AllOf((self.read(node.this), self.read(node.expression)))
            case exp.Or():
                return AnyOf((self.read(node.this), self.read(node.expression)))
            case exp.Not():
                return Not(self.read(node.this))
            case exp.Boolean():
                return AllOf(()) if node.this else AnyOf(())
            case exp.Column():
                return self._flag(node)
        return self._comparison(node)

    def _comparison(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Is(expression=exp.Null()):
                return IsNull(self._column(node.this))
            case exp.NEQ():
                return Not(self._compare(node, "=", "="))
            case exp.NullSafeEQ():
                # Never unknown, so that NOT of it is not either.
                found = self._compare(node, "=", "=")
                return AllOf((Not(IsNull(found.column)), found))
            case exp.In() if node.expressions:
                return AnyOf(tuple(self._with(node.this, "=", value) for value in node.expressions))
            case exp.Between() if not node.args.get("symmetric"):
                low, high = node.args["low"], node.args["high"]
                return AllOf((self._with(node.this, ">=", low), self._with(node.this, "<=", high)))
        if type(node) in _OPERATORS:
            return self._compare(node, *_OPERATORS[type(node)])
        raise self._refusal(node)

    def _compare(self, node: exp.Expr, operator: str, turned: str) -> Compare:
        if isinstance(node.expression, exp.Column):
            return self._with(node.expression, turned, node.this)
        return self._with(node.this, operator, node.expression)

    def _with(self, column: exp.Expr, operator: str, constant: exp.Expr) -> Compare:
        found = self._column(column)
        value = _constant(found.type, constant)
        if value is None:
            raise self._refusal(constant, f"is not a constant of the type {found.type} of column '{found.name}'")
        return Compare(found, operator, value)

    def _flag(self, node: exp.Column) -> Condition:
        column = self._column(node)
        if column.type != "boolean":
            raise self._refusal(node, "is not a boolean column")
        return Compare(column, "=", True)

    def _column(self, node: exp.Expr) -> Column:
        if not isinstance(node, exp.Column) or node.table:
            raise self._refusal(node)
        column = self.schema.find(node.name)
        if column is None:
            raise NotFound(
                f"column of table '{self.table}'", node.name, hint=f"Columns here: {', '.join(self.schema.names)}."
            )
        return column

    def _refusal(self, node: exp.Expr, reason: str = "cannot be told alike here and at a source") -> Unsupported:
        line, column = place_of(node)
        what = f"In the condition of table '{self.table}', {render(node)} {reason}."
        return Unsupported(what, line=line, column=column, hint=_HINT)


def _constant(type_: str, node: exp.Expr) -> Value | None:
    """The constant's value if comparing it with a column of that type needs no conversion that loses anything."""
    if type_ in INTEGERS:
        return _integer(node)
    if decimal := _DECIMAL.fullmatch(type_):
        return _decimal(node, int(decimal[1]), int(decimal[2]))
    reader = _READERS.get(type_)
    return reader(node) if reader is not None else None


def _number(node: exp.Expr) -> Decimal | None:
    if isinstance(node, exp.Neg):
        found = _number(node.this)
        return None if found is None else -found
    return Decimal(node.name) if node.is_number and _NUMBER.fullmatch(node.name) else None


def _integer(node: exp.Expr) -> int | None:
    value = _number(node)
    if value is None or "." in render(node) or not -(1 << 63) <= value < 1 << 63:
        return None
    return int(value)


def _decimal(node: exp.Expr, precision: int, scale: int) -> Decimal | None:
    """None as well where no decimal of 38 digits can hold both, and Spark would round."""
    value = _number(node)
    if value is None:
        return None
    digits, places = len(value.as_tuple().digits), max(0, -int(value.as_tuple().exponent))
    whole = max(precision - scale, digits - places, 0 if places else _DIGITS_OF_INT)
    return value if whole + max(scale, places) <= _WIDEST else None


def _text(node: exp.Expr) -> str | None:
    return node.name if node.is_string else None


def _boolean(node: exp.Expr) -> bool | None:
    return bool(node.this) if isinstance(node, exp.Boolean) else None


def _spelled(node: exp.Expr, *types: exp.DType) -> str | None:
    """The text of ``DATE '…'`` and its like."""
    is_typed = isinstance(node, exp.Cast) and node.to.this in types
    return _text(node.this) if is_typed else None


def _date(node: exp.Expr) -> date | None:
    text = _spelled(node, exp.DType.DATE) or _text(node)
    return _parsed(date.fromisoformat, text) if text is not None and _DATE.fullmatch(text) else None


def _instant(node: exp.Expr) -> datetime | None:
    text = _spelled(node, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
    if text is None or not _ZONE.search(text) or not _MOMENT.fullmatch(_ZONE.sub("", text)):
        return None
    return _parsed(datetime.fromisoformat, text)


def _moment(node: exp.Expr) -> datetime | None:
    text = _spelled(node, exp.DType.TIMESTAMPNTZ)
    return _parsed(datetime.fromisoformat, text) if text is not None and _MOMENT.fullmatch(text) else None


def _parsed(parse: Callable[[str], _T], text: str) -> _T | None:
    try:
        return parse(text)
    except ValueError:
        return None


_READERS: dict[str, Callable[[exp.Expr], Value | None]] = {
    "string": _text,
    "boolean": _boolean,
    "date": _date,
    "timestamp": _instant,
    "timestamp_ltz": _instant,
    "timestamp_ntz": _moment,
}
