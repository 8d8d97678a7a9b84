"""Which sources are captured together.

Law: sources that wait for each other are in one group, so that one ledger order holds for them; all others come alone,
so that none waits for one that is slow or down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollview.catalog import SourceRecord
from rollview.core.order import Order

Group = tuple[str, ...]
"""Sources that are captured together, because they wait for each other; mostly one."""


@dataclass(frozen=True, slots=True)
class CapturePlan:
    groups: tuple[Group, ...]
    order: Order


def plan_capture(records: Sequence[SourceRecord], names: Sequence[str], order: Order) -> CapturePlan:
    """``records``: all sources that there are; ``names``: those that are to be captured."""
    shared = [r.name for r in records if order.by_time or r.settings.get("global_transactions") is not None]
    groups: list[Group] = [(name,) for name in names if name not in shared]
    if any(name in shared for name in names):
        groups.append(tuple(shared))
    return CapturePlan(tuple(groups), order)


def lease_name(source: str) -> str:
    return f"source:{source}"
