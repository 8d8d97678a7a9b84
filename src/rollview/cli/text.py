"""Answers as text for people: tables and sentences on stdout, the rest on stderr.

Law: nothing a name or value holds can move the cursor or colour the terminal; in a pipe no cell is ever cut.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rollview.core.references import masked
from rollview.core.schema import Column
from rollview.errors import RollviewError
from rollview.results import Result, plain

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_PIPE_WIDTH = 100_000


class TextOutput:
    """``render`` tells how each kind of answer reads."""

    row_limit: int | None = 100

    def __init__(self, render: Callable[[Result, TextOutput], None]) -> None:
        self._render = render
        width = None if sys.stdout.isatty() else _PIPE_WIDTH
        self.out = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False, soft_wrap=True)
        self.aside = Console(file=sys.stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def show(self, answer: Result) -> None:
        self._render(answer, self)

    def say(self, sentence: str, style: str = "") -> None:
        self.out.print(Text(printable(sentence, keep="\n"), style=style))

    def facts(self, facts: Mapping[str, str]) -> None:
        """One line for each, the values below each other."""
        width = max(map(len, facts))
        for name, value in facts.items():
            self.say(f"{name.ljust(width)}   {value}")

    def table(self, headings: Sequence[str], rows: Iterable[Sequence[Any]], right: Iterable[str] = ()) -> None:
        """A table; columns named in ``right`` hold numbers."""
        numbers = set(right)
        columns = [Column(name, "bigint" if name in numbers else "string") for name in headings]
        self.rows(columns, rows)

    def rows(self, columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> None:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column in columns:
            justify = "right" if column.type.startswith(_NUMBERS) else "left"
            table.add_column(Text(printable(column.name)), justify=justify, overflow="fold")  # type: ignore[arg-type]
        for row in rows:
            table.add_row(*(_cell(value) for value in row))
        self.out.print(table)

    def note(self, text: str) -> None:
        self.aside.print(Text(printable(text)))

    def progress(self, text: str) -> None:
        self.aside.print(Text(printable(text), style="dim"))

    def error(self, error: RollviewError) -> None:
        self.aside.print(Text(printable(masked(error.message), keep="\n"), style="red"))
        if error.hint:
            self.aside.print(Text(printable(masked(error.hint), keep="\n")))


def printable(text: str, keep: str = "") -> str:
    """The text with control characters spelled out."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def _cell(value: Any) -> Text:
    if value is None:
        return Text("NULL", style="dim")
    value = plain(value)
    return Text(printable(value if isinstance(value, str) else _spelled(value)))


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ", ".join(_spelled(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_spelled(item)}" for key, item in value.items()) + "}"
    return "NULL" if value is None else str(value)
