"""Columns by csn as text."""

from __future__ import annotations

from rollview import results
from rollview.cli.render.dispatch import renders
from rollview.cli.text import TextOutput


@renders(results.SchemaLog)
def _(answer: results.SchemaLog, to: TextOutput) -> None:
    rows = [(e.relation, e.id, e.column, e.type, e.new_name or "–", e.since, _end(e.until)) for e in answer.entries]
    to.table(("relation", "id", "column", "type", "new name", "from csn", "to csn"), rows, ("id", "from csn", "to csn"))


@renders(results.SchemaAt)
def _(answer: results.SchemaAt, to: TextOutput) -> None:
    to.say(f"{answer.name} at csn {answer.csn}\n")
    rows = [(e.id, e.column, e.type, e.since, _end(e.until), e.older_rows or "") for e in answer.columns]
    to.table(("id", "column", "type", "from csn", "to csn", "older rows"), rows, ("id", "from csn", "to csn"))


def _end(csn: int | None) -> str:
    return "–" if csn is None else str(csn)
