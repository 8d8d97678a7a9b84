"""Where a command's words go: answers on stdout, everything else on stderr, as text or as JSON.

Law: with JSON, stdout holds one document, and every line of stderr is one object with ``note``, ``progress`` or
``error``.
"""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import Any, Protocol

from rollview.cli.answers import RowSet
from rollview.core.references import masked
from rollview.errors import RollviewError
from rollview.results import Result, plain


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"


class CommandOutput(Protocol):
    """The one thing commands speak to."""

    @property
    def row_limit(self) -> int | None:
        """How many rows of data are shown when the user gives no limit."""

    def show(self, answer: Result) -> None: ...
    def note(self, text: str) -> None: ...
    def progress(self, text: str) -> None: ...
    def error(self, error: RollviewError) -> None: ...


class JsonOutput:
    row_limit: int | None = None

    def show(self, answer: Result) -> None:
        if isinstance(answer, RowSet):
            self._stream(answer)
        else:
            sys.stdout.write(_dump(answer.to_json()) + "\n")

    def note(self, text: str) -> None:
        self._aside(note=text)

    def progress(self, text: str) -> None:
        self._aside(progress=text)

    def error(self, error: RollviewError) -> None:
        self._aside(error=plain(error.to_json()))

    def _aside(self, **what: Any) -> None:
        sys.stderr.write(masked(_dump(what)) + "\n")
        sys.stderr.flush()

    def _stream(self, answer: RowSet) -> None:
        """One row at a time, so that memory does not grow with the data."""
        names, write = answer.keys(), sys.stdout.write
        write(f'{{"columns": {_dump(plain(answer.columns))}, "rows": [')
        for index, row in enumerate(answer.rows):
            write(",\n" if index else "\n")
            write(_dump(dict(zip(names, plain(row), strict=True))))
        label = "".join(f", {_dump(name)}: {_dump(value)}" for name, value in answer.label().items())
        write(f'\n], "more": {json.dumps(answer.more)}{label}}}\n')


def make_output(form: Form) -> CommandOutput:
    if form is Form.JSON:
        return JsonOutput()
    # Loaded for people only: rich takes a tenth of a second.
    from rollview.cli.render import render
    from rollview.cli.text import TextOutput

    return TextOutput(render)


def _dump(value: Any) -> str:
    # What cannot be printed, such as half of a surrogate pair, is escaped.
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
