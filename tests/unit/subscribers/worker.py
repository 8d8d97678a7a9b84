"""Delivers in a process of its own, to whoever has an address."""

from __future__ import annotations

import os
import sys
from multiprocessing import get_context

# Loaded once, before processes are forked.
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401
import pyspark.sql.functions  # noqa: F401
import sqlalchemy.dialects.sqlite  # noqa: F401

from rollview import subscribers
from rollview.relations import reader as _reader  # noqa: F401
from rollview.subscribers import delivering as _delivering  # noqa: F401
from rollview.subscribers import files as _files  # noqa: F401
from rollview.warehouse import Warehouse

_processes = get_context("forkserver")
_processes.set_forkserver_preload([__name__])


def deliver_in_a_process(root: str, most_rows: int, fault: str | None = None) -> int | None:
    """Its exit code: 0, or that of a kill where it dies at the fault."""
    process = _processes.Process(target=_work, args=(root, most_rows, fault))
    process.start()
    process.join()
    return process.exitcode


def _work(root: str, most_rows: int, fault: str | None) -> None:
    if fault is not None:
        os.environ["ROLLVIEW_FAULT"] = fault
    with Warehouse.open(root) as warehouse:
        done = subscribers.deliver(warehouse._place, most_rows=most_rows)
    problems = [one.problem for one in done.subscribers if one.problem is not None]
    if problems:
        sys.exit(str(problems))
