"""A choice that a text leaves to whoever evaluates it, and the words that make it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.functions import ARRIVAL
from rollview.algebra.total_order import OrderedRows
from rollview.algebra.words import find_span


@dataclass(frozen=True, slots=True)
class Edit:
    """``text`` stands for what is between two places of the author's text."""

    first: int
    behind: int
    text: str

    def applied(self, text: str) -> str:
        return text[: self.first] + self.text + text[self.behind :]


@dataclass(frozen=True, slots=True)
class Tie:
    """``edit``: how it is made; None where no order of columns makes it. ``by``: what tells equal rows apart."""

    node: exp.Expr
    name: str
    edit: Edit | None = None
    by: str = ""
    reason: str = ARRIVAL
    hint: str | None = None


HELD = "'v', "


def span_of(node: exp.Expr) -> tuple[int, int]:
    found = find_span(node)
    assert found is not None, "the parser remembers where calls, orders and limits stand"
    return found


def listed(rows: OrderedRows, terms: Iterable[exp.Expr]) -> str:
    return ", ".join(rows.text(term) for term in terms)


def fields(rows: OrderedRows, terms: Iterable[exp.Expr], value: str) -> str:
    """A struct that is ordered by the terms, and holds a value."""
    items = [f"'c{i}', {rows.text(term)}" for i, term in enumerate(terms, 1)]
    return f"NAMED_STRUCT({', '.join([*items, HELD + value])})"


def without_order(rows: OrderedRows, given: Iterable[exp.Expr]) -> str:
    """Why no order of columns decides."""
    names = ", ".join(rows.text(column) for column in rows.without_order(given))
    return f"{ARRIVAL}, and {names} has no order" if names else ARRIVAL
