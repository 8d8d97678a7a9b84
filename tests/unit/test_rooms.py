"""Who may call what: laws of the rooms that imports alone do not tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollview

SOURCE = Path(rollview.__file__).parent

WRITERS_OF_LAYOUTS = ("set_layout", "activate_layouts")


def _calls(method: str, arguments: int = 0) -> Iterator[tuple[str, str]]:
    """The room and the file of every ``something.method(...)`` with at least so many arguments."""
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < arguments:
                continue
            if isinstance(node.func, ast.Attribute) and node.func.attr == method:
                yield where.partition("/")[0], where


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
