"""What the recorded steps tell estimates: of one view, and of the machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from rollview.catalog import Catalog, Snapshot, Step
from rollview.costs.reading import Costs
from rollview.costs.work import machine_of

_LATELY = 20
"""So many of the last steps of all relations tell what a job costs."""


def past_steps(catalog: Catalog, name: str) -> tuple[Step, ...]:
    """A view's last propagation steps, newest first, and its creation."""
    created = catalog.last_step(name, "create")
    tried = [step for step in catalog.steps(name, 40) if step.kind == "propagate" and step.status != "running"]
    return (*tried, *([created] if created is not None else []))


def costs_of(catalog: Catalog, root: Path, snapshot: Snapshot) -> Costs:
    machine = machine_of(catalog.steps(limit=_LATELY))
    return Costs(snapshot, root, catalog.changes, partial(past_steps, catalog), machine)
