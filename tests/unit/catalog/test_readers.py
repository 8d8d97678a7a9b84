"""Answers that somebody may still fetch, and their end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from rollview.catalog import Catalog
from rollview.catalog import tables as t
from rollview.catalog.database import system_time
from rollview.catalog.pulse import LIFE
from rollview.catalog.readers import Readers

WAYS = {"v": "extent"}


def numbers(readers: Readers) -> list[int]:
    return [one.id for one in readers.live()]


def test_a_reader_lives_until_it_says_that_it_has_fetched(catalog: Catalog) -> None:
    first = catalog.readers.begin({"v", "t"}, 3, WAYS, 0.25)
    second = catalog.readers.begin({"t"}, 3, {"t": "rows"}, 0.5)
    assert numbers(catalog.readers) == [first, second]
    assert catalog.readers.live()[0].relations == {"v", "t"}
    catalog.readers.end(first, 0.75)
    assert numbers(catalog.readers) == [second]
    (told,) = catalog.readers.ended()
    assert (told.id, told.csn, told.ways, told.expected_seconds, told.seconds) == (first, 3, WAYS, 0.25, 0.75)


def test_one_whose_answer_was_thrown_away_ends_later(catalog: Catalog) -> None:
    first = catalog.readers.begin({"v"}, 3, WAYS, 0.25)
    catalog.readers.leave(first, pid=1)
    catalog.readers.end_left()
    assert numbers(catalog.readers) == [first], "a forked process has thrown away a copy of its own"
    catalog.readers.leave(first, pid=os.getpid())
    assert numbers(catalog.readers) == [first]
    second = catalog.readers.begin({"v"}, 3, WAYS, 0.25)
    assert numbers(catalog.readers) == [second]
    assert catalog.readers.ended() == (), "nobody fetched it"


def test_one_of_a_dead_process_does_not_live(catalog: Catalog, url: str) -> None:
    begin = "Catalog.open(sys.argv[1]).readers.begin({'v'}, 3, {}, 0.1)"
    script = f"import sys; from rollview.catalog import Catalog; {begin}"
    subprocess.run([sys.executable, "-c", script, url], check=True, cwd=Path.cwd())
    assert numbers(catalog.readers) == []


def test_one_without_a_sign_of_life_does_not_live(catalog: Catalog, reopened: Callable[..., Catalog]) -> None:
    number = catalog.readers.begin({"v"}, 3, WAYS, 0.1)
    with catalog._database.write() as connection:
        connection.execute(t.reader.update().values(expires=system_time() - 2 * LIFE))
    assert numbers(reopened().readers) == []
    other = reopened().readers.begin({"v"}, 3, WAYS, 0.1)
    with catalog._database.read() as connection:
        left = connection.execute(sa.select(t.reader.c.id)).scalars().all()
    assert left == [other] != [number]


def test_a_sign_of_life_is_given_while_it_lives(catalog: Catalog) -> None:
    catalog.readers.begin({"v"}, 3, WAYS, 0.1)
    with catalog._database.write() as connection:
        connection.execute(t.reader.update().values(expires=system_time()))
    assert numbers(catalog.readers) == []
    catalog.readers._pulse._renew()
    assert len(catalog.readers.live()) == 1
