"""The sides of the comparison. Each is loaded once, takes every batch, and brings a view up to date when asked.

``change`` is not measured: it stands for what happens to the tables anyway. ``refresh`` is.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from bench.workload import Batch


class Side(Protocol):
    name: str

    def change(self, batch: Batch) -> None: ...

    def refresh(self, view: str) -> float | None:
        """The seconds to count, where they are others than those that pass meanwhile."""

    def rows(self, view: str) -> pa.Table | None:
        """The view as it is now, or None where the side is not compared."""

    def close(self) -> None: ...
