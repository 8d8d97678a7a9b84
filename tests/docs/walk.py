"""Which functions of which rooms a request goes through, from a trace of the request itself."""

from __future__ import annotations

import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from tests.docs.pages import ROOT

VALUES = ("core", "types", "results", "errors", "definitions")
"""Rooms of plain values; whoever reads the walk wants to know where the work is done."""
STAGES = ("schedule", "capture", "propagate", "apply", "publish", "evolve", "sources.boundary")
"""Every function of these that is called from another room stands in the walk."""


def layers() -> list[list[str]]:
    """The rooms from top to bottom, as import-linter enforces them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return [[room.strip("() ").removeprefix("rollview.") for room in line.split("|")] for line in lines]


@dataclass
class Walk:
    """``steps``: functions in the order in which they were first called from another room; ``back``: calls of a
    function by a room below its own."""

    steps: list[str] = field(default_factory=list)
    back: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._height = {room: -number for number, line in enumerate(layers()) for room in line}

    def see(self, frame: FrameType, event: str, _argument: Any) -> None:
        called = _function(frame)
        caller = _caller(frame) if event == "call" and called is not None else None
        if called is None or caller is None or called[0] == caller[0]:
            return
        if self._height[called[0]] > self._height[caller[0]] and not called[-1].startswith("<"):
            self.back.add((".".join(caller), ".".join(called)))
        name = ".".join(called)
        if called[0] not in VALUES and not called[-1].startswith(("_", "<")) and name not in self.steps:
            self.steps.append(name)

    @contextmanager
    def seeing(self) -> Iterator[None]:
        threading.setprofile(self.see)
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def _function(frame: FrameType) -> tuple[str, ...] | None:
    """Room, module and function, of one of ours."""
    parts = str(frame.f_globals.get("__name__", "")).split(".")
    if parts[0] != "rollview" or len(parts) < 2:
        return None
    return (*parts[1:], frame.f_code.co_name)


def _caller(frame: FrameType) -> tuple[str, ...] | None:
    above = frame.f_back
    while above is not None:
        found = _function(above)
        if found is not None:
            return found
        above = above.f_back
    return None
