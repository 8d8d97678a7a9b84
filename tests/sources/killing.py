"""What processes do that are killed on the way. They are forked from one that has loaded everything already."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from rollview.sources import SourceSettings
from rollview.warehouse import Warehouse
from tests.faults.crew import Crew, Gateway, Place


def killed(request: str, root: Path, settings: SourceSettings, step: str) -> None:
    """A process that is asked to ``request`` is killed at that step."""
    ended = _crew().run(Place(root), obey, request, settings, dict(os.environ), fault=step)
    assert ended.killed, ended


@cache
def _crew() -> Crew:
    return Crew(Gateway(0, ""))


def obey(warehouse: Warehouse, request: str, settings: SourceSettings, environment: Mapping[str, str]) -> None:
    os.environ.update({name: value for name, value in environment.items() if name != "ROLLVIEW_FAULT"})
    if request == "add":
        warehouse.add_source("bank", settings)
    elif request == "capture":
        (done,) = warehouse.capture().sources
        assert done.problem is None, done.problem
    elif request == "widen":
        warehouse.resnapshot("bank", widen=True, settings=settings)
    elif request == "resnapshot":
        warehouse.resnapshot("bank")
    elif request == "maintain":
        warehouse.maintain()
    else:
        warehouse.remove_source("bank")
