from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rollview.core.backoff import delay
from rollview.errors import UsageError
from rollview.relations.cadence import cadence_of, every, parse_cadence, parse_turns

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("every 10 seconds", 10),
        ("EVERY 2 m", 120),
        ("within 5 minutes", 210),
        ("cron 30 * * * *", 1800),
        ("cron 0 0 * * *", 43200),
    ],
)
def test_when_it_is_due(words: str, seconds: int) -> None:
    """Last done at noon, and stale for a minute since."""
    assert parse_cadence(words).due(NOON, NOON + timedelta(minutes=1)) == NOON + timedelta(seconds=seconds)


def test_what_lacks_nothing_is_never_due() -> None:
    for words in ("every 1 second", "continuous", "manual", "within 1 hour", "cron * * * * *"):
        assert parse_cadence(words).due(NOON, None) is None
    assert parse_cadence("manual").due(NOON, NOON) is None
    due = parse_cadence("continuous").due(NOON, NOON)
    assert due is not None
    assert due < NOON


@pytest.mark.parametrize("words", ["", "often", "every second", "cron nonsense", "every -1 seconds", "cron * * *"])
def test_what_is_not_understood_is_refused(words: str) -> None:
    with pytest.raises(UsageError, match="does not say when"):
        parse_cadence(words)


def test_the_own_property_wins_over_the_project() -> None:
    default = every(10)
    by_name = {"default": "every 3 seconds", "Bank": "continuous"}
    assert cadence_of("bank", None, by_name, default) == parse_cadence("continuous")
    assert cadence_of("other", None, by_name, default) == every(3)
    assert cadence_of("bank", "manual", by_name, default) == parse_cadence("manual")
    assert cadence_of("bank", None, "every 5 seconds", default) == every(5)
    assert cadence_of("bank", None, None, default) == default


def test_every_failure_waits_longer_up_to_ten_minutes() -> None:
    for failures, longest in ((1, 1), (2, 2), (5, 16), (11, 600), (10_000, 600)):
        waits = [delay(failures).total_seconds() for _ in range(50)]
        assert longest / 2 <= min(waits) <= max(waits) <= longest
        assert len(set(waits)) > 1


def test_cadences_may_be_said_table_by_table() -> None:
    turns = parse_turns("orders every 5 seconds,`New Customers`  cron 0,30 * * * *, lines continuous")
    assert turns == {
        "orders": every(5),
        "new customers": parse_cadence("cron 0,30 * * * *"),
        "lines": parse_cadence("continuous"),
    }
    assert turns["orders"].words == "every 5 seconds"
    for words in ("every 5 seconds", "cron 0,30 * * * *", "manual"):
        assert parse_turns(words) is None
    with pytest.raises(UsageError, match="does not say when"):
        parse_turns("orders often")
    with pytest.raises(UsageError, match="says twice"):
        parse_turns("orders manual, ORDERS manual")
