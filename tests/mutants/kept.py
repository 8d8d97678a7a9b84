"""Answers as they come, in a file: a run that was stopped goes on, and a later one begins with the test that caught.

Law: an answer counts only for the same source and the same tests. Of others, only the test's name is of use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.mutants.operators import Mutant


@dataclass(frozen=True, slots=True)
class Answer:
    """``caught_by``: the test that failed, empty if none did; ``tests``: how many reach the function."""

    mutant: Mutant
    caught_by: str
    tests: int


class Kept:
    """``of``: what the answers are answers of, as ``digest`` tells it."""

    def __init__(self, path: Path, of: str) -> None:
        self._path, self._of = path, of
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self._known = {(line["named"], line["place"], line["choice"]): line for line in lines if line["of"] == of}
        self._catchers = {line["named"]: line["caught_by"] for line in lines if line["caught_by"]}

    def keep(self, answer: Answer) -> None:
        mutant = answer.mutant
        line: dict[str, Any] = {"of": self._of, "named": mutant.named, "place": mutant.place, "choice": mutant.choice}
        with self._path.open("a") as file:
            file.write(json.dumps({**line, "caught_by": answer.caught_by, "tests": answer.tests}) + "\n")

    def find(self, mutant: Mutant) -> Answer | None:
        line = self._known.get((mutant.named, mutant.place, mutant.choice))
        return None if line is None else Answer(mutant, line["caught_by"], line["tests"])

    def catcher(self, mutant: Mutant) -> str:
        """The test that caught one like it last time."""
        return str(self._catchers.get(mutant.named, ""))


def digest(folders: Iterable[Path], tests: Sequence[str]) -> str:
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".sql", ".txt"))
    return sha256(repr(tests).encode() + b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
