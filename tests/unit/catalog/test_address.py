from __future__ import annotations

import logging
import traceback
from pathlib import Path

import pytest
from tests.servers.postgres import PostgresServer

from rollview import errors
from rollview.catalog import Catalog, address
from rollview.catalog.database import Database

SECRET = "s3cr3t-canary"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@db.example:5432/shop",
        f"postgres://me@db.example/shop?password={SECRET}",
        f"postgresql+psycopg://me:{SECRET}@db.example/shop?sslpassword={SECRET}&options={SECRET}",
    ],
)
def test_an_address_never_shows_its_secrets(url: str) -> None:
    parsed = address.parse(url)
    database = Database(parsed)
    for text in (repr(parsed), str(parsed), parsed.shown, repr(database), repr(Catalog(database))):
        assert SECRET not in text
        assert "db.example" in text


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/shop",
        f"postgresql://me@127.0.0.1:1/shop?password={SECRET}",
        f"postgresql://me@127.0.0.1:1/shop?nonsense={SECRET}",
        f"postgresql://me:x@127.0.0.1:{SECRET}/shop",
        f"postgresql://me:a/{SECRET}@127.0.0.1/shop",
        f"mongodb://me:{SECRET}@127.0.0.1/shop",
        f"not a url {SECRET}",
    ],
)
def test_no_error_or_log_shows_a_secret(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for attempt in (Catalog.open, Catalog.create):
        with pytest.raises(errors.RollviewError) as caught:
            attempt(url)
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert SECRET not in str(caught.value.to_json())
    assert SECRET not in caplog.text


def test_a_catalog_with_a_password_keeps_it_to_itself(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with postgres_server.new_schema() as place:
        url = place.replace("postgres@", f"postgres:{SECRET}@")
        with Catalog.create(url) as catalog, catalog.lease("commit"):
            texts = [repr(catalog), repr(catalog.leases())]
        with pytest.raises(errors.AlreadyExists) as caught:
            Catalog.create(url)
    assert SECRET not in "".join([*texts, str(caught.value), caplog.text])


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://localhost/x", "", "nonsense"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(errors.UsageError):
        Catalog.open(url)


def test_a_path_is_an_address_whatever_its_letters(tmp_path: Path) -> None:
    path = tmp_path / "odd ?#%20 name's.db"
    Catalog.create(path).close()
    assert path.exists()
    assert Catalog.open(path).snapshot().moment.csn == 0
