"""How long PostgreSQL is waited for.

Law: nobody waits for ever. A server that is gone is noticed by TCP; one that is there and gives nothing, not even a
part of an answer, for longer than it may, has its connection closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

import psycopg

CONNECT_SECONDS = 10
PARAMETERS: Mapping[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def connection_type(seconds: float) -> type[psycopg.Connection[Any]]:
    """Connections that give up a server that gives nothing for so long."""

    class Patient(psycopg.Connection[Any]):
        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            return super().wait(self._limited(gen), *arguments, **options)

        def _limited(self, gen: Any) -> Any:
            """The same steps; each is told whether something came, or only some time has passed."""
            last = monotonic()
            try:
                state = next(gen)
                while True:
                    ready = yield state
                    if ready:
                        last = monotonic()
                    elif monotonic() - last > seconds:
                        # In the middle of an answer a connection is of no use to anybody.
                        self.pgconn.finish()
                        raise psycopg.OperationalError(f"no answer for {seconds:g} seconds")
                    state = gen.send(ready)
            except StopIteration as done:
                return done.value

    return Patient
