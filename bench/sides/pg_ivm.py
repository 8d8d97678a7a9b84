"""pg_ivm, the extension of PostgreSQL that brings a view up to date within the transaction that changes its tables.

Its cost is what it adds to the writers: how much longer a batch takes than in a database without the view.
"""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
from tests.servers.postgres import running_postgres

from bench.sides.postgres import SETTINGS, Tables
from bench.workload import VIEWS, Batch

_VERSION = 18
"""The first that takes an extension from any folder."""
_VIEW = "v1"


def unpacked() -> Path | None:
    """Where the files of Debian's package are: ``ROLLVIEW_PG_IVM``, or what ``make pg-ivm`` unpacked."""
    place = Path(os.environ.get("ROLLVIEW_PG_IVM") or Path(__file__).parents[2] / ".pg_ivm")
    return place.resolve() if place.is_dir() else None


class PgIvm:
    name = "pg_ivm"

    def __init__(self, scale: float, scratch: Path) -> None:
        self.stack = ExitStack()
        extension = unpacked()
        settings = {
            **SETTINGS,
            "extension_control_path": f"'{extension}/usr/share/postgresql/{_VERSION}:$system'",
            "dynamic_library_path": f"'{extension}/usr/lib/postgresql/{_VERSION}/lib:$libdir'",
        }
        server = self.stack.enter_context(running_postgres(_VERSION, settings))
        server.execute("CREATE DATABASE without")
        self.without = self.stack.enter_context(Tables(server.url("without"), scale, scratch))
        self.within = self.stack.enter_context(Tables(server.url(), scale, scratch))
        self.within.execute("CREATE EXTENSION pg_ivm")
        self.within.execute("SELECT pgivm.create_immv(%s, %s)", _VIEW, VIEWS[_VIEW])
        self.added = 0.0

    def change(self, batch: Batch) -> None:
        self.added = _seconds(self.within, batch) - _seconds(self.without, batch)

    def refresh(self, view: str) -> float:
        return self.added

    def rows(self, view: str) -> pa.Table | None:
        found = self.within.execute(f"SELECT n_name, revenue, sold FROM {_VIEW}").fetchall()
        return pa.table(dict(zip(("n_name", "revenue", "sold"), map(list, zip(*found, strict=True)), strict=True)))

    def close(self) -> None:
        self.stack.close()


def _seconds(tables: Tables, batch: Batch) -> float:
    began = time.perf_counter()
    tables.change(batch)
    return time.perf_counter() - began
