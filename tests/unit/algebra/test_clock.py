"""A word such as 'now' is a text until it becomes a time, and then the view is refused."""

from __future__ import annotations

import pytest

from rollview.algebra.clock import check_words
from rollview.algebra.resolve import Known, resolve
from rollview.core.schema import Column, Schema
from rollview.errors import NotDeterministic

TABLES = {"t": Known("t", Schema((Column("k", "int"), Column("w", "string"), Column("d", "date"))))}


@pytest.mark.parametrize(
    "condition",
    [
        "d < 'now'",
        "w < DATE 'today'",
        "to_date(w) < 'now'",
        "make_date(k, 1, 1) < ('Tomorrow')",
        "CAST(w AS DATE) < 'now'",
        "substring(CAST(w AS DATE), 1, 4) < 'now'",
        "coalesce(d, 'yesterday') IS NULL",
    ],
)
def test_a_word_beside_a_time_is_a_time(condition: str) -> None:
    with pytest.raises(NotDeterministic):
        check_words(resolve(f"SELECT k FROM t WHERE {condition}", TABLES))


@pytest.mark.parametrize(
    "condition",
    ["w = 'now'", "upper(w) = 'now'", "coalesce(w, 'today') = w", "CAST(k AS STRING) < 'now'", "d < '2020-01-01'"],
)
def test_a_word_beside_a_text_is_a_text(condition: str) -> None:
    check_words(resolve(f"SELECT k FROM t WHERE {condition}", TABLES))
