"""A page of the docs as blocks, each knowing where it stands.

Law: the blocks and the lines between them, joined, are the page; so a block's output can be written in place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

_FENCE = re.compile(r"^```(\w*)\s*$")
_NOTE = re.compile(r"^<!-- (.+) -->$")


@dataclass(frozen=True, slots=True)
class Block:
    """``first`` and ``last`` are the lines of the text between the fences; ``note`` is the comment just above."""

    kind: str
    lines: tuple[str, ...]
    first: int
    note: str | None
    follows: int | None

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    @property
    def last(self) -> int:
        return self.first + len(self.lines)

    @property
    def file(self) -> str | None:
        return self.note.removeprefix("file: ") if self.note and self.note.startswith("file: ") else None


def all_pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def read_blocks(page: Path) -> list[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    at = 0
    while at < len(lines):
        opened = _FENCE.match(lines[at])
        if opened is None:
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].rstrip() == "```")
        found.append(Block(opened[1], tuple(lines[at + 1 : end]), at + 1, _note(lines, at), _before(found, lines, at)))
        at = end + 1
    return found


def prose(page: Path) -> str:
    """The page without its blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _note(lines: list[str], at: int) -> str | None:
    said = _NOTE.match(lines[at - 1]) if at else None
    return said[1] if said else None


def _before(found: list[Block], lines: list[str], at: int) -> int | None:
    """The number of the block that this one follows with nothing but blank lines between."""
    between = lines[found[-1].last + 1 : at] if found else ["no block"]
    return len(found) - 1 if not any(line.strip() for line in between) else None
