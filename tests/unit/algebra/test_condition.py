from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from rollview.algebra.condition import Compare, Value, condition, spelled
from rollview.core.schema import Column, Schema
from rollview.errors import SqlError, UsageError

SCHEMA = Schema(
    tuple(
        Column(*one.split(":"))
        for one in (
            *("i:int", "s:string", "f:double", "m:decimal(38,30)", "n:decimal(38,28)", "b:boolean"),
            *("d:date", "t:timestamp", "z:timestamp_ntz"),
        )
    )
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
    ("text", "value"),
    [
        ("i = -7", -7),
        ("i = 9223372036854775807", 2**63 - 1),
        ("m = 1.5", Decimal("1.5")),
        ("n = 1", Decimal(1)),
        ("n = -2.25", Decimal("-2.25")),
        ("s = '5'", "5"),
        ("b", True),
        ("b = FALSE", False),
        ("d = DATE '2026-02-03'", date(2026, 2, 3)),
        ("d = '2026-02-03'", date(2026, 2, 3)),
        ("t = TIMESTAMP '2026-02-03 04:05:06.5Z'", datetime(2026, 2, 3, 4, 5, 6, 500_000, UTC)),
        ("z = TIMESTAMP_NTZ '2026-02-03 04:05:06'", datetime(2026, 2, 3, 4, 5, 6)),
    ],
)
def test_a_constant_has_the_value_that_its_column_would_have(text: str, value: Value) -> None:
    found = condition(text, SCHEMA, "r")
    assert isinstance(found, Compare)
    assert (found.value, type(found.value)) == (value, type(value))


@pytest.mark.parametrize(
    "text",
    [
        "1 = 1",
        "i = '5'",
        "i = 1e3",
        "i IN (SELECT 1)",
        "m = 123456789.5",
        "s = 5",
        "d = 5",
        "d = '20260203'",
        "d = DATE '2026-13-01'",
        "d = TIMESTAMP '2026-02-03'",
        "t = 5",
        "t = TIMESTAMP '2026-02-03 04:05Z'",
        "z = 5",
        "z = TIMESTAMP_NTZ '2026-02-03 04:05'",
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
