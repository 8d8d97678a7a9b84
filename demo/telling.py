"""How the story is told: chapters, sentences, tables and times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

console = Console(width=min(100, Console().width))


def chapter(title: str) -> None:
    console.print()
    console.print(Panel(f"[bold]{title}[/]", border_style="cyan"))


def say(text: str) -> None:
    console.print(f"  {text}")


def show_sql(text: str) -> None:
    console.print(Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True))


def show_table(data: DataFrame, title: str) -> None:
    table = Table(*data.columns, title=title)
    for row in data.limit(12).collect():
        table.add_row(*(spelled(value) for value in row))
    console.print(table)


def spelled(value: Any) -> str:
    return "NULL" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints what was done and how long it took."""
    began = time.perf_counter()
    yield
    console.print(f"  [dim]{time.perf_counter() - began:6.2f} s[/]  {what}")
