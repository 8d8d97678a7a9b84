"""Usage adds up by label and over threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rollview.engine.meter import Meter, Usage


def test_an_action_counts_also_when_it_fails() -> None:
    meter = Meter()
    with pytest.raises(RuntimeError), meter.action("apply sales"):
        raise RuntimeError
    assert meter.of("apply sales").actions == 1


def test_the_total_is_the_sum_of_the_labels() -> None:
    meter = Meter()
    meter.rows("a", 3)
    meter.read("a", 2, 100)
    meter.wrote("b", 1, 50)
    assert meter.total() == Usage(rows=3, files_read=2, bytes_read=100, files_written=1, bytes_written=50)
    assert set(meter.by_label()) == {"a", "b"}


def test_a_part_is_counted_alone_and_with_the_rest_also_when_it_fails() -> None:
    meter = Meter()
    meter.rows("a", 3)
    with pytest.raises(RuntimeError), meter.part() as own, own.action("a"):
        raise RuntimeError
    assert (own.of("a").rows, own.of("a").actions) == (0, 1)
    assert (meter.of("a").rows, meter.of("a").actions) == (3, 1)


def test_threads_lose_nothing() -> None:
    meter = Meter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: meter.rows("x", 1), range(2000)))
    assert meter.total().rows == 2000
