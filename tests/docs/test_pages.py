"""Every block of every page runs, in the order in which a reader meets it, and shows what it says.

``ROLLVIEW_DOCS=write`` puts what is said now into the pages, in place of what is not said any more;
``ROLLVIEW_DOCS=fresh`` also in place of what differs in times and sizes only.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rollview.algebra.text import parse_statements
from rollview.cli import progress
from rollview.project import FILE, load_project
from rollview.sources import kinds
from tests.docs.console import PROMPT, Typed, read_commands, run
from tests.docs.pages import ROOT, Block, all_pages, read_blocks
from tests.docs.sameness import ANY, differs

RUN = ("console", "python")
WRITE = os.environ.get("ROLLVIEW_DOCS") in ("write", "fresh")
FRESH = os.environ.get("ROLLVIEW_DOCS") == "fresh"
NEEDS_POSTGRES = "ROLLVIEW_CATALOG"

PAGES = [page for page in all_pages() if any(block.kind in RUN for block in read_blocks(page))]


@pytest.fixture(autouse=True)
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody at an empty folder whose commands are all quick, in UTC."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "PATIENCE", 3600.0)
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("ROLLVIEW_OUTPUT", "text")
    # A page may add a kind of source, for itself.
    monkeypatch.setattr(kinds, "KINDS", dict(kinds.KINDS))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.spark
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if NEEDS_POSTGRES in page.read_text(encoding="utf-8"):
        server = request.getfixturevalue("postgres_server")
        monkeypatch.setenv(NEEDS_POSTGRES, request.getfixturevalue("own_schema")(server))
    walk = Walk(page, tmp_path)
    walk.run()
    assert not walk.differences, "\n\n".join(walk.differences)


class Walk:
    """A reader on the way through one page."""

    def __init__(self, page: Path, home: Path) -> None:
        self.page = page
        self.home = home
        self.names: dict[str, Any] = {"__name__": "page"}
        self.differences: list[str] = []
        self.rewritten: list[tuple[Block, list[str]]] = []

    def run(self) -> None:
        blocks = read_blocks(self.page)
        said: list[str] = []
        for number, block in enumerate(blocks):
            if block.file is not None:
                self._write(block)
            elif block.kind == "console":
                self._console(block)
            elif block.kind == "python":
                said = self._python(block)
            elif block.kind == "text" and block.follows is not None and blocks[block.follows].kind == "python":
                self._compare(block, list(block.lines), said, f"block {number}")
            elif block.kind == "sql":
                parse_statements(block.text)
        if WRITE and self.rewritten:
            self._rewrite()

    def _write(self, block: Block) -> None:
        assert block.file is not None
        path = Path(block.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if path.name == FILE:
            load_project(path.parent)

    def _console(self, block: Block) -> None:
        lines: list[str] = []
        for typed in read_commands(block.lines):
            said = self._typed(typed)
            difference = differs(typed.shown, said, in_any_order=_has_no_order(typed.command))
            if difference:
                self.differences.append(f"{self.page.name}: {typed.command}\n{difference}")
            lines += [PROMPT + typed.lines[0], *typed.lines[1:], *_kept(typed, said, difference)]
        if lines != list(block.lines):
            self.rewritten.append((block, lines))

    def _typed(self, typed: Typed) -> list[str]:
        said, _ = run(typed.command)
        return [line.replace(str(self.home), "~") for line in said]

    def _python(self, block: Block) -> list[str]:
        said = io.StringIO()
        # The lines keep their numbers, so that a traceback names the page's own line.
        code = compile("\n" * block.first + block.text, str(self.page), "exec")
        with contextlib.redirect_stdout(said):
            exec(code, self.names)
        return [line.rstrip().replace(str(self.home), "~") for line in said.getvalue().strip("\n").splitlines()]

    def _compare(self, block: Block, shown: list[str], said: list[str], where: str) -> None:
        difference = differs(shown, said, in_any_order=True)
        if difference:
            self.differences.append(f"{self.page.name}: {where}\n{difference}")
            self.rewritten.append((block, said))

    def _rewrite(self) -> None:
        lines = self.page.read_text(encoding="utf-8").splitlines()
        for block, new in reversed(self.rewritten):
            lines[block.first : block.last] = new
        self.page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _kept(typed: Typed, said: list[str], difference: str | None) -> Sequence[str]:
    """What the page shows from now on; what it leaves out stays left out."""
    return said if difference or (FRESH and ANY not in typed.shown) else typed.shown


def _has_no_order(command: str) -> bool:
    """Rows of a bag come in any order."""
    return any(words in command for words in ("view read", "view delta", "SELECT"))
