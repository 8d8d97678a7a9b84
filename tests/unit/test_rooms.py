"""Who may call what: laws of the rooms that imports alone do not tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rollview

SOURCE = Path(rollview.__file__).parent

WRITERS_OF_LAYOUTS = ("set_layout", "activate_layouts")


def _calls(method: str) -> Iterator[tuple[str, str]]:
    """The room and the file of every ``something.method(...)``."""
    for path in sorted(SOURCE.rglob("*.py")):
        where = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                yield where.partition("/")[0], where


@pytest.mark.parametrize("method", WRITERS_OF_LAYOUTS)
def test_only_evolve_writes_layouts(method: str) -> None:
    assert {room for room, _ in _calls(method)} == {"evolve"}
