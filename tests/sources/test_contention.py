"""The lab's measurement of writers beside those who keep a view: that it keeps the view, and leaves nothing behind."""

from __future__ import annotations

import psycopg
import pytest

from rollview.errors import UsageError
from rollview.lab.contention import RECORDED, contention_rows, measure_contention
from tests.servers.postgres import PostgresServer


@pytest.mark.postgres
def test_the_view_is_kept_while_four_write_and_nothing_is_left(postgres_server: PostgresServer) -> None:
    """A delta that is not the view is an error of the measurement itself."""
    found = measure_contention(postgres_server.url(), 0.5, rows=2_000)
    assert [one.kept_by for one in found] == ["nobody", "REFRESH", "Propagate", "rolling"]
    assert all(one.rounds and one.p50 <= one.p95 <= one.p99 for one in found)
    assert len(list(contention_rows(found))) == 5
    with psycopg.connect(postgres_server.url()) as connection:
        left = connection.execute("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'rollview_lab%'").fetchone()
    assert left == (0,)


def test_what_was_recorded_is_told_for_all_four_ways() -> None:
    assert [one.kept_by for one in RECORDED] == ["nobody", "REFRESH", "Propagate", "rolling"]


def test_a_server_that_does_not_answer_is_told_without_its_password() -> None:
    with pytest.raises(UsageError, match="cannot be reached") as refusal:
        measure_contention("postgresql://somebody:secret@127.0.0.1:1/nothing", 0.1)
    assert "secret" not in str(refusal.value)
