"""Who may call what: laws of the rooms that imports alone do not tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from tests.shape import SOURCE, modules

WRITERS_OF_LAYOUTS = ("set_layout", "activate_layouts")


def _calls(method: str, arguments: int = 0) -> Iterator[tuple[str, str]]:
    """The room and the file of every ``something.method(...)`` with at least so many arguments."""
    for called, given, where in _all_calls():
        if called == method and given >= arguments:
            yield where.partition("/")[0], where


@cache
def _all_calls() -> list[tuple[str, int, str]]:
    """The method, how many arguments it is given, and the file."""
    return [
        (node.func.attr, len(node.args), module.path.relative_to(SOURCE).as_posix())
        for module in modules(SOURCE).values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]


@pytest.mark.parametrize("method", WRITERS_OF_LAYOUTS)
def test_only_evolve_writes_layouts(method: str) -> None:
    assert {room for room, _ in _calls(method)} == {"evolve"}


@pytest.mark.parametrize("method", ["pin", "begin_step", "finish_step"])
def test_only_publish_records_steps_and_pins_versions(method: str) -> None:
    assert {room for room, _ in _calls(method)} == {"publish"}


def test_only_one_module_commits_to_a_delta_log() -> None:
    """A commit of a transaction takes no arguments."""
    files = {where for _, where in _calls("commit", arguments=3)}
    assert files == {"publish/step.py"}


@pytest.mark.parametrize("point", ["computed", "first_logged", "logged", "published"])
def test_the_points_of_a_publication_are_reached_by_publish(point: str) -> None:
    """A local transaction has more to do between its files and its logs, and says itself when they are there."""
    reached = re.compile(rf'reach\("\w+\.{point}"\)')
    rooms = {path.parent.name for path in SOURCE.rglob("*.py") if reached.search(path.read_text(encoding="utf-8"))}
    assert rooms <= ({"publish", "tables"} if point == "computed" else {"publish"})
