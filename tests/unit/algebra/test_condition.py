from __future__ import annotations

import pytest

from rollview.algebra.condition import condition, spelled
from rollview.core.schema import Column, Schema
from rollview.errors import SqlError, UsageError

SCHEMA = Schema(
    tuple(Column(*one.split(":")) for one in ("i:int", "s:string", "f:double", "m:decimal(38,30)", "t:timestamp"))
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("i = 1", "I = 1"),
        ("5 > i", "I < 5"),
        ("i IN (1, -2)", "(I = 1) OR (I = -2)"),
        ("i = 1 AND s = 'x'", "(I = 1)"),
        ("i = 1 OR s = 'x'", None),
        ("NOT (i = 1 AND s = 'x')", None),
        ("NOT (i = 1 AND i IS NULL)", "NOT ((I = 1) AND (I IS NULL))"),
        ("s IS NULL", None),
        ("FALSE", "1 = 0"),
        ("TRUE", "1 = 1"),
    ],
)
def test_what_every_database_understands_alike_is_said_to_it(text: str, said: str | None) -> None:
    assert spelled(condition(text, SCHEMA, "r"), {"i": "I"}.get) == said


@pytest.mark.parametrize(
    "text",
    [
        "i = 1.5",
        "i = 9223372036854775808",
        "i = NULL",
        "i IN (1, NULL)",
        "i = i",
        "r.i = 1",
        "f > 1",
        "f = 1.0",
        "m = 1",
        "s = 'x' COLLATE UNICODE",
        "s BETWEEN SYMMETRIC 'a' AND 'b'",
        "t > TIMESTAMP '2026-01-01 00:00:00'",
        "t > '2026-01-01'",
        "i",
        "i = 1 UNION SELECT 2",
        "i = 1; DROP TABLE r",
        "nobody = 1",
        "",
    ],
)
def test_what_could_mean_something_else_elsewhere_is_refused(text: str) -> None:
    with pytest.raises((SqlError, UsageError)):
        condition(text, SCHEMA, "r")
