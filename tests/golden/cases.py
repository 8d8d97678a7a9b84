"""The golden files: view text above ``---``, what rollview makes of it below, ``===`` between cases.

A case opens with ``# title``. Other ``#`` lines steer it: ``# motion: p=inserts, c=none`` says how tables moved,
``# no sql`` leaves the propagation SQL out of the file (it is executed all the same), ``# columns: a, b`` is the view's
column list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rollview.algebra.script import Motion

_MOTIONS = {
    "none": Motion(changed=False, deletes=False, updates=False),
    "inserts": Motion(changed=True, deletes=False, updates=False),
    "no updates": Motion(changed=True, deletes=True, updates=False),
    "any": Motion(),
}


@dataclass(frozen=True, slots=True)
class Case:
    file: str
    title: str
    steering: tuple[str, ...]
    text: str
    expected: str
    motion: Mapping[str, Motion] = field(default_factory=dict)

    @property
    def wants_sql(self) -> bool:
        return "no sql" not in self.steering

    @property
    def columns(self) -> tuple[str, ...]:
        listed = next((line.removeprefix("columns: ") for line in self.steering if line.startswith("columns: ")), "")
        return tuple(name.strip() for name in listed.split(",") if name.strip())


def read(path: Path) -> list[Case]:
    return [_case(path.name, part) for part in path.read_text(encoding="utf-8").split("\n===\n") if part.strip()]


def write(path: Path, cases: list[Case]) -> None:
    path.write_text("\n===\n".join(_spelled(case) for case in cases) + "\n", encoding="utf-8")


def _case(file: str, part: str) -> Case:
    head, _, expected = part.strip().partition("\n---\n")
    lines = head.removesuffix("\n---").splitlines()
    notes = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    text = "\n".join(line for line in lines if not line.startswith("# "))
    return Case(file, notes[0], tuple(notes[1:]), text, expected, _motion(notes[1:]))


def _motion(notes: list[str]) -> dict[str, Motion]:
    said = next((note.removeprefix("motion: ") for note in notes if note.startswith("motion: ")), "")
    pairs = (item.split("=") for item in said.split(", ") if item)
    return {table: _MOTIONS[how] for table, how in pairs}


def _spelled(case: Case) -> str:
    notes = "\n".join(f"# {note}" for note in (case.title, *case.steering))
    return f"{notes}\n{case.text}\n---\n{case.expected}"
