"""What a console block types and shows, and typing it: ``rollview`` runs in this process, on one warm Spark."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

from rollview.cli.main import main

PROMPT = "$ "


@dataclass(frozen=True, slots=True)
class Typed:
    """A command, as typed over one or more lines, and the output shown below it."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def command(self) -> str:
        return "\n".join(self.lines)


def read_commands(lines: tuple[str, ...]) -> Iterator[Typed]:
    rest = list(lines)
    while rest:
        line = rest.pop(0)
        assert line.startswith(PROMPT), f"a console block goes on with a command, not: {line}"
        typed = [line.removeprefix(PROMPT)]
        while not _is_whole("\n".join(typed)):
            typed.append(rest.pop(0))
        shown = []
        while rest and not rest[0].startswith(PROMPT):
            shown.append(rest.pop(0))
        yield Typed(tuple(typed), tuple(shown))


def run(command: str) -> tuple[list[str], int]:
    """What the command says on both streams, in order, and how it ended."""
    said: list[str] = []
    code = 0
    for words in _steps(command):
        lines, code = _step(words)
        said += lines
        if code:
            break
    return said, code


def _step(words: list[str]) -> tuple[list[str], int]:
    match words:
        case ["cd", folder]:
            os.chdir(folder)
            return [], 0
        case ["export", setting]:
            name, _, value = setting.partition("=")
            os.environ.setdefault(name, value)
            return [], 0
        case ["rollview", *arguments]:
            return _rollview(arguments)
        case _:
            done = subprocess.run(words, capture_output=True, text=True)
            return _lines(done.stdout + done.stderr), done.returncode


def _rollview(arguments: list[str]) -> tuple[list[str], int]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return _lines(said.getvalue()), code


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def _steps(command: str) -> Iterator[list[str]]:
    step: list[str] = []
    for word in shlex.split(command.replace("\\\n", " "), comments=True):
        if word == "&&":
            yield step
            step = []
        else:
            step.append(word)
    yield step


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\")
