"""An SQL prompt over one warm session.

Law: a statement runs when its semicolon is typed, the last one of a file or pipe also without; between BEGIN and COMMIT
statements are kept and then run as one transaction. An error ends the statement, never the shell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rollview.cli.invocation import Invocation
from rollview.cli.statements import is_complete, run_statements, split_statements
from rollview.errors import RollviewError

if TYPE_CHECKING:
    from rollview.warehouse import Warehouse

_LEAVE = ("exit", "quit", r"\q")


@dataclass(slots=True)
class Shell:
    run: Invocation
    warehouse: Warehouse
    limit: int | None
    kept: list[str] | None = None
    typed: list[str] = field(default_factory=list)
    allow_unsafe: bool = False

    @property
    def prompt(self) -> str:
        return "…> " if self.typed else "transaction> " if self.kept is not None else "rollview> "

    def take(self, line: str) -> bool:
        """Take one line; False when the user wants to leave."""
        if not self.typed and line.strip().rstrip(";").lower() in _LEAVE:
            return False
        self.typed.append(line)
        text = "\n".join(self.typed)
        if is_complete(text) or not text.strip():
            self.finish()
        return True

    def finish(self) -> None:
        """Run what was typed so far."""
        text = "\n".join(self.typed)
        self.typed.clear()
        for statement in split_statements(text):
            self._statement(statement)

    def _statement(self, statement: str) -> None:
        match statement.lower().split():
            case ["begin"] | ["begin", "transaction"]:
                self.kept = []
            case ["rollback"]:
                self.kept = None
            case ["commit"]:
                kept, self.kept = self.kept, None
                self._execute(tuple(kept or ()))
            case _ if self.kept is not None:
                self.kept.append(statement)
            case _:
                self._execute((statement,))

    def _execute(self, statements: tuple[str, ...]) -> None:
        if not statements:
            return
        try:
            with self.run.working("Running SQL"):
                answers = run_statements(self.warehouse, statements, self.limit, self.allow_unsafe)
            self.run.output.show(answers)
        except RollviewError as error:
            self.run.output.error(error)
        except KeyboardInterrupt:
            self.run.output.note("Interrupted.")


def run_shell(run: Invocation, warehouse: Warehouse, limit: int | None, allow_unsafe: bool = False) -> None:
    shell = Shell(run, warehouse, limit, allow_unsafe=allow_unsafe)
    interactive = sys.stdin.isatty()
    if interactive:
        run.output.note("SQL ends with a semicolon. BEGIN; … COMMIT; is one transaction. Leave with exit or Ctrl-D.")
    for line in _lines(shell, interactive):
        if not shell.take(line):
            break
    if not interactive:
        shell.finish()
    if shell.kept:
        run.output.note("The open transaction was not committed.")


def _lines(shell: Shell, interactive: bool) -> Iterator[str]:
    if not interactive:
        yield from sys.stdin
        return
    # To load it changes how input() reads a terminal: it brings editing and history.
    import readline  # noqa: F401

    while True:
        try:
            yield input(shell.prompt)
        except EOFError:
            return
        except KeyboardInterrupt:
            shell.typed.clear()
            sys.stderr.write("\n")
