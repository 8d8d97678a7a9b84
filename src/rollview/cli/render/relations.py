"""How lists and details of tables and views read as text."""

from __future__ import annotations

from typing import Any

from rollview import results
from rollview.cli import answers
from rollview.cli.render.dispatch import renders
from rollview.cli.render.words import places_in_words, time_of, values
from rollview.cli.text import TextOutput


@renders(answers.RenameSaid)
def _(answer: answers.RenameSaid, to: TextOutput) -> None:
    to.say(f"A column '{answer.new}' of table '{answer.table}' will be what '{answer.old}' is now.")


@renders(answers.Dropped)
def _(answer: answers.Dropped, to: TextOutput) -> None:
    to.say(f"Dropped {answer.kind} '{answer.name}'.")


@renders(answers.RelationList)
def _(answer: answers.RelationList, to: TextOutput) -> None:
    if not answer.relations:
        to.say(f"No {answer.kind}s yet.")
    elif answer.kind == "table":
        to.table(("table", "columns", "rows", "state csn"), values(answer.relations, *_TABLE), ("rows", "state csn"))
    else:
        rows = [(v.name, v.rows, v.csn, ", ".join(v.reads), v.comment or "") for v in answer.relations]
        to.table(("view", "rows", "csn", "reads", "comment"), rows, ("rows", "csn"))


_TABLE = ("name", "columns", "rows", "csn")


@renders(answers.RelationDetail)
def _(answer: answers.RelationDetail, to: TextOutput) -> None:
    relation = answer.relation
    to.say(f"{relation.kind.value} {relation.name}\n")
    to.table(("column", "type", "constraints"), [(c.name, c.type, _marks(c.name, relation)) for c in relation.schema])
    for key in relation.constraints.checked.foreign_keys:
        to.say(f"foreign key ({', '.join(key.columns)}) → {key.table} ({', '.join(key.referenced)})")
    to.say("")
    pins = [(p.part.value, p.version, p.through, p.rows) for p in relation.pins.values() if p.is_kept]
    to.table(("part", "Delta version", "through csn", "rows"), pins, ("Delta version", "through csn", "rows"))
    to.say(f"\nfolder   {answer.folder}")
    to.say(f"reads    {', '.join(relation.depends_on) or '–'}")
    if answer.sees:
        to.say(f"sees     {', '.join(answer.sees)}")
    to.say(f"read by  {', '.join(answer.read_by) or '–'}")
    to.say(f"valid    {_valid(answer.valid)}")
    if answer.places:
        to.say(f"tables   {places_in_words(answer.places)}")
    if relation.problem:
        to.say(f"problem  {relation.problem}", style="red")
    if relation.definition:
        to.say(f"\n{relation.definition.query}")


def _valid(valid: results.ValidTime) -> str:
    csns = f"csn {valid.first}" if valid.first == valid.through else f"csn {valid.first} to {valid.through}"
    since = f" since {time_of(valid.since)}" if valid.since is not None else ""
    until = f" until {time_of(valid.until)}" if valid.until is not None else ""
    return f"{csns},{since}{until}" if since or until else csns


def _marks(column: str, relation: Any) -> str:
    rules = relation.constraints.checked
    unique = any(column in key for key in rules.unique)
    marks = {"primary key": column in rules.primary_key, "unique": unique, "not null": column in rules.not_null}
    return ", ".join(mark for mark, holds in marks.items() if holds)
