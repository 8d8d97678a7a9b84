"""Net effects in Arrow."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rollview.types.signed_rows import net_counts, net_rows, separate_rows


def rows(*counted: tuple[Any, int]) -> pa.Table:
    """Columns whose name Arrow would take for a path, and ``_count``."""
    values = [value for value, _ in counted] or pa.array([], pa.int64())
    return pa.table({"a.b": values, "_count": pa.array([count for _, count in counted], pa.int64())})


def told(table: pa.Table) -> list[tuple[Any, int]]:
    return list(zip(table["a.b"].to_pylist(), table["_count"].to_pylist(), strict=True))


def test_counts_are_added_and_zeroes_are_gone() -> None:
    assert told(net_counts(rows((1, 1), (2, -1), (None, 1), (1, 2), (2, 1), (None, 1)))) == [(1, 3), (None, 2)]


def test_rows_come_in_the_order_in_which_they_were_first_seen() -> None:
    many = [(value, 1) for value in range(5000, 0, -1)]
    assert told(net_counts(rows(*many, *many))) == [(value, 2) for value, _ in many]


def test_every_copy_becomes_a_row_with_its_sign() -> None:
    assert told(net_rows(rows((1, 1), (1, 1), (2, -1), (3, 1), (3, -1)))) == [(1, 1), (1, 1), (2, -1)]
    assert told(separate_rows(rows((1, 3), (2, -2)))) == [(1, 1)] * 3 + [(2, -1)] * 2


def test_rows_that_all_come_or_all_go_are_left_as_they_are() -> None:
    coming = rows((1, 1), (1, 1))
    assert net_rows(coming) is coming
    assert net_rows(rows()).num_rows == 0


def test_floating_numbers_are_the_same_if_their_bits_are() -> None:
    nan, zero = float("nan"), rows((0.0, 1), (-0.0, -1))
    assert net_counts(rows((nan, 1), (nan, -1))).num_rows == 0
    assert [(str(value), count) for value, count in told(net_counts(zero))] == [("0.0", 1), ("-0.0", -1)]
