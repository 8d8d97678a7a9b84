"""Connections to a PostgreSQL server, and its errors in our words.

Law: the session's spelling of values is fixed, a server that is not on this machine shows a certificate that is
checked unless the address says otherwise, and no secret of the address is in any message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollview.core.references import names_secret
from rollview.core.tls import postgres_tls, with_advice
from rollview.core.urls import has_stray_at
from rollview.errors import EnvironmentFault, RollviewError, SourceDown
from rollview.sources.postgres.values import PATIENT, SESSION

try:
    import psycopg
    from psycopg import conninfo

    from rollview.core.patience import PARAMETERS, connection_type
except ModuleNotFoundError as error:
    raise EnvironmentFault(
        "A PostgreSQL source needs the package psycopg.", hint="pip install 'rollview[postgres]'"
    ) from error

_IN_USE = ("55006", "55P03", "57014", "57P01", "57P02", "57P03", "53300")

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresServer:
    def __init__(self, source: str, address: str, seconds: float) -> None:
        """``seconds``: how long the server may give nothing while it is asked something."""
        self._source = source
        self._parameters = _parameters(source, address)
        self._connection = connection_type(seconds)

    @contextmanager
    def connected(self, **options: Any) -> Iterator[Connection]:
        """A connection in which every statement is its own transaction."""
        with self.translated(), self._connected(options) as connection:
            for statement in (PATIENT, *(() if "replication" in options else SESSION)):
                connection.execute(statement.encode())
            yield connection

    def _connected(self, options: Mapping[str, Any]) -> Connection:
        return self._connection.connect(**self._parameters, autocommit=True, **options)

    @contextmanager
    def translated(self) -> Iterator[None]:
        try:
            yield
        except RollviewError:
            raise
        except psycopg.Error as error:
            raise self._in_our_words(error) from None

    def _in_our_words(self, error: psycopg.Error) -> RollviewError:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
        for secret in (str(value) for name, value in self._parameters.items() if value and names_secret(name)):
            reason = reason.replace(secret, "***")
        reason = with_advice(reason)
        state = error.sqlstate
        if state in _IN_USE or (isinstance(error, psycopg.OperationalError) and state is None):
            return SourceDown(self._source, reason)
        if isinstance(error, psycopg.OperationalError) and (state or "").startswith("08"):
            return SourceDown(self._source, reason)
        return EnvironmentFault(f"Source '{self._source}' refused: {reason}.", source=self._source, sqlstate=state)


def _parameters(source: str, address: str) -> dict[str, Any]:
    try:
        given: dict[str, Any] = conninfo.conninfo_to_dict(address)
    # The driver's message may quote the piece that holds the password.
    except psycopg.Error:
        raise _not_understood(source) from None
    # An '@', '/', '?' or '#' of a password that is not percent-encoded puts a piece of it there.
    if has_stray_at(address) or "@" in str(given.get("host") or "").removeprefix("@"):
        raise _not_understood(source)
    own = {**PARAMETERS, "application_name": "rollview"}
    return {**own, **given, **postgres_tls(given, os.environ)}


def _not_understood(source: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"The address of source '{source}' cannot be understood.",
        hint="Write it like postgresql://user:password@host:5432/database; special characters percent-encoded.",
    )
