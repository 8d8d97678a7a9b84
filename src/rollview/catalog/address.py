"""Where a catalog is, as a URL that may hold a password.

Law: what is shown of an address never holds its password or any of its options' values.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from rollview import errors

_HIDDEN = "***"
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}


@dataclass(frozen=True, slots=True)
class Address:
    url: sa.URL = field(repr=False)
    shown: str

    @property
    def file(self) -> Path | None:
        return Path(self.url.database or "") if self.url.get_backend_name() == "sqlite" else None

    def without_secrets(self, text: str) -> str:
        for secret in self._secrets():
            text = text.replace(secret, _HIDDEN)
        return text

    def holds_secret(self, text: str) -> bool:
        return any(secret in text for secret in self._secrets())

    def _secrets(self) -> tuple[str, ...]:
        options = (v for value in self.url.query.values() for v in ((value,) if isinstance(value, str) else value))
        return tuple(s for s in (str(self.url.password or ""), *options) if len(s) > 2)


def parse(url: str | os.PathLike[str]) -> Address:
    """A URL, or the path of an SQLite file."""
    parsed = _parsed(url) if isinstance(url, str) else sa.URL.create("sqlite", database=os.fspath(url))
    driver = _DRIVERS.get(parsed.drivername)
    if driver is None:
        raise errors.UsageError(
            f"A catalog cannot be kept in '{parsed.drivername}'.", hint="Use a sqlite or a postgresql URL."
        )
    if driver == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise errors.UsageError("A catalog in SQLite needs a file.", hint="Use sqlite:///path/to/catalog.db.")
    parsed = parsed.set(drivername=driver)
    return Address(parsed, _shown(parsed))


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    # The parser's own message may quote the piece that holds the password.
    except (sa.exc.ArgumentError, ValueError):
        raise _not_understood() from None
    # An '@' or a '/' of a password that is not percent-encoded puts a piece of it there.
    if "@" in (parsed.host or "") or (parsed.host and "@" in (parsed.database or "")):
        raise _not_understood()
    return parsed


def _not_understood() -> errors.UsageError:
    return errors.UsageError(
        "The catalog's URL cannot be understood.",
        hint="Write it like postgresql://user:password@host:5432/database; special characters percent-encoded.",
    )


def _shown(url: sa.URL) -> str:
    hidden = url.set(drivername=url.get_backend_name(), query={})
    options = "?" + "&".join(f"{key}={_HIDDEN}" for key in sorted(url.query)) if url.query else ""
    return hidden.render_as_string(hide_password=True) + options
