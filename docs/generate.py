"""Writes docs/reference from the code: ``make docs``. With ``--check`` it only says what is not up to date.

Law: a page of the reference is a function of the code alone, so it can be compared with what is there. No Spark.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import typer
from examples import EXAMPLES, TYPES, Example
from python_api import python_page

from rollview import errors, project
from rollview.algebra import functions, view
from rollview.algebra.definition import declare
from rollview.algebra.resolve import Known
from rollview.cli.exits import exit_code
from rollview.cli.invocation import PANEL
from rollview.cli.main import application
from rollview.core.schema import Column, Schema
from rollview.engine import session
from rollview.errors import RollviewError, SqlError

FOLDER = Path(__file__).parent / "reference"
HEADER = "<!-- Written by docs/generate.py: run 'make docs'. -->\n"


def main() -> int:
    stale = [name for name, write in PAGES.items() if not _is_current(name, write())]
    if "--check" in sys.argv:
        sys.stdout.writelines(f"docs/reference/{name} is not up to date: run 'make docs'.\n" for name in stale)
        return 1 if stale else 0
    for name in stale:
        (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"docs/reference/{name}\n")
    return 0


def _is_current(name: str, text: str) -> bool:
    path = FOLDER / name
    return path.exists() and path.read_text(encoding="utf-8") == text


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |"

    headings = list(headings)
    return "\n".join([line(headings), "|" + "---|" * len(headings), *(line(row) for row in rows)]) + "\n"


# Command line


def cli_page() -> str:
    group = typer.main.get_command(application())
    commands = list(_commands(group, "rollview"))
    shared = [item for item in commands[0][1].params if item.rich_help_panel == PANEL]
    contents = "\n".join(f"* [`{path}`](#{path.replace(' ', '-')}): {_summary(one)}" for path, one in commands)
    parts = [
        HEADER,
        "# Command line\n",
        "Answers go to stdout, everything else to stderr.\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 try again later.\n",
        contents + "\n",
        "## Options of every command\n",
        table(("option", "meaning"), (_option(item) for item in shared)),
        "A point in time is a csn (`812`), `latest`, or a time\n"
        "(`'2026-12-13 17:00'`, local unless it has an offset).\n",
        *(_command(path, one) for path, one in commands),
    ]
    return "\n".join(parts)


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from _commands(one, f"{path} {name}")
        else:
            yield f"{path} {name}", one


def _summary(one: Any) -> str:
    return str(one.help).split("\n\n")[0].replace("\n", " ").strip()


def _command(path: str, one: Any) -> str:
    own = [item for item in one.params if item.rich_help_panel != PANEL]
    arguments = [item for item in own if type(item).__name__ == "TyperArgument"]
    options = [item for item in own if item not in arguments]
    usage = " ".join([path, *map(_argument_usage, arguments), *map(_option_usage, options)])
    rows = [*((f"`{_shown(item)}`", item.help or "") for item in arguments), *map(_option, options)]
    parts = [f"## {path}\n", f"```text\n{usage}\n```\n", *_help(str(one.help))]
    return "\n".join([*parts, table(("", "meaning"), rows)] if rows else parts)


def _help(text: str) -> Iterator[str]:
    """Paragraphs as they are, examples as one block."""
    examples: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        word, _, rest = paragraph.partition(":")
        if word == "Example" and rest:
            examples.append(rest.strip())
        elif paragraph.startswith("  "):
            examples.append(paragraph.strip())
        elif paragraph.strip() not in ("Example:", "Examples:"):
            yield " ".join(paragraph.split()) + "\n"
    if examples:
        yield "```text\n" + "\n".join(examples) + "\n```\n"


def _shown(item: Any) -> str:
    return str(item.name).upper() + ("…" if item.nargs == -1 else "")


def _argument_usage(item: Any) -> str:
    return _shown(item) if item.required else f"[{_shown(item)}]"


def _option_usage(item: Any) -> str:
    spelled = f"{item.opts[0]} {_value(item)}".strip()
    return spelled if item.required else f"[{spelled}]"


def _option(item: Any) -> tuple[str, str]:
    spelled = ", ".join(f"`{name}`" for name in item.opts)
    default = item.default
    shown = (
        "" if default in (None, False, ()) or item.required else f" Default: `{getattr(default, 'value', default)}`."
    )
    from_environment = f" From the environment: `{item.envvar}`." if item.envvar else ""
    return spelled, f"{item.help}{shown}{from_environment}"


def _value(item: Any) -> str:
    annotation = str(item.type_descriptor.annotation)
    return "" if "bool" in annotation else str(item.name).upper()


# Errors


def errors_page() -> str:
    meanings = dict(_meanings(errors.__doc__ or ""))
    rows = [
        (f"`{kind.__name__}`", f"`{kind.code}`", str(int(_exit(kind))), _again(kind), meanings.get(kind.__name__, ""))
        for kind in _kinds(RollviewError)
    ]
    parts = [
        HEADER,
        "# Errors\n",
        "Every error that rollview raises is a `rollview.RollviewError`: a sentence (`message`), what to do next\n"
        "(`hint`), a stable `code`, whether the same request may succeed later (`retryable`), and\n"
        "`facts` a program can read.\n",
        "On the command line the sentence and the hint go to stderr; with `--output json` so does one object:\n",
        '```text\n{"error": {"code": …, "message": …, "hint": …, "retryable": …, "facts": {…}}}\n```\n',
        "A traceback is shown with `--debug` only.\n",
        table(("class", "code", "exit", "try again", "meaning"), rows),
        "The tree:\n",
        "```text\n" + _tree(errors.__doc__ or "") + "\n```\n",
    ]
    return "\n".join(parts)


def _kinds(kind: type[RollviewError]) -> Iterator[type[RollviewError]]:
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == errors.__name__:
            yield from _kinds(below)


def _exit(kind: type[RollviewError]) -> int:
    return int(exit_code(kind.__new__(kind)))


def _again(kind: type[RollviewError]) -> str:
    return "yes" if kind.retryable else ""


def _tree(doc: str) -> str:
    return doc.split("\n\n", 1)[1].strip()


def _meanings(doc: str) -> Iterator[tuple[str, str]]:
    for line in _tree(doc).splitlines():
        name, _, meaning = line.lstrip("│├└─ ").partition(" ")
        yield name, meaning.strip()


# Settings


def config_page() -> str:
    rows = _rows(project.Config, _SETTINGS)
    variables = [(f"`{name}`", meaning) for name, meaning in sorted({**_VARIABLES, **_cli_variables()}.items())]
    parts = [
        HEADER,
        "# Settings\n",
        f"A project is a folder with `{project.FILE}`. `rollview init` writes it:\n",
        f"```yaml\n{project._TEMPLATE}```\n",
        table(("key", "value", "default", "meaning"), rows),
        "Anything else in the file is refused. In place of the catalog's URL or a Spark setting, `env:NAME` takes it\n"
        "from the environment and `file:PATH` from a file, relative to the project; a secret in the file itself is\n"
        "refused. A file that belongs to another user is [refused](../../SECURITY.md) too, because its settings run\n"
        "code.\n",
        "## Sources\n",
        table(("key of a source", "value", "default", "meaning"), _rows(project.SourceConfig, _OF_SOURCE)),
        "A table is its name at the source, `NAME=TABLE`, or:\n",
        table(("key of a table", "value", "default", "meaning"), _rows(project.TableConfig, _OF_TABLE)),
        "## Environment\n",
        table(("variable", "meaning"), variables),
        "## Spark settings\n",
        "These decide what SQL means. They are set in rollview's own session and in the one it makes beside yours:\n",
        _conf(session.MEANING),
        "These make small refreshes quick, in both:\n",
        _conf(session.TUNING),
        "These are set only in a session that rollview starts itself, together with `spark.driver.memory` (a quarter\n"
        "of the machine, at most 8 GiB) and, where no `master` is named, `spark.master` (`local[*]`),\n"
        "`spark.driver.host` (`127.0.0.1`) and `spark.sql.shuffle.partitions` (twice the cores, at least 8). What\n"
        "`spark:` in the file says wins over all of them; Java options and rules of the optimiser that it leaves out\n"
        "are added to rollview's:\n",
        _conf(session._OURS),
    ]
    return "\n".join(parts)


_SETTINGS = {
    "version": "the version of the file's form",
    "warehouse": "the folder with tables and views, relative to the file",
    "sources": "databases and folders to capture, by name: see [how to](../how-to/capture-a-source.md)",
    "catalog": "the catalog's URL: `postgresql://…` or `sqlite:///…`; embedded in the warehouse without it",
    "spark": "settings for the Spark session, as Spark spells them; `master` and `remote` say "
    "[where it is](../how-to/on-your-cluster.md)",
    "retention": "how long changes are kept: `30 days`, `1000 commits`, or by name of table or view; or for ever",
    "detail": "how long they are kept commit by commit; older ones are compressed",
    "schedule": "when `rollview run` sees to sources and views, for all or by name: "
    "see [how to](../how-to/capture-a-source.md#run-it-all)",
    "propagate": "when it propagates views, besides refreshing them, in the same words: "
    "see [how to](../how-to/choose-a-policy.md)",
    "policy": "when views are propagated and applied, for all, by name or by tables: "
    "see [how to](../how-to/choose-a-policy.md)",
    "order": "`arrival` or `commit_time`: the order of commits of several sources",
    "delay": "how far behind the others a source may be and still be waited for, in the order of commit times",
    "parallel": "how many workers refresh views that do not read each other; `refresh --workers` for one refresh",
    "substitutes": "tables that stand for others in views when those are gone: `of`, `by`, `columns`, `extent`; see "
    "[how to](../how-to/replace-what-is-gone.md)",
}
_OF_SOURCE = {
    "kind": "`postgres`, `mariadb`, `mysql`, `sqlite`, `delta`, `files` or `debezium`",
    "address": "a URL as `env:NAME` or `file:PATH`, or the path of a database or folder",
    "tables": "what is captured",
    "options": "what the kind understands",
    "global_transactions": "where the ids of transactions over several sources are, and who takes part",
    "copy": "`all` of each table, only what views need (`needed`), or no rows (`none`): the source is asked for them",
}
_OF_TABLE = {
    "table": "its name at the source",
    "name": "its name here; without it, the last part of the other",
    "types": "Spark types by column, where the source does not tell",
    "key": "columns that are unique, where the source does not tell",
    "format": "`csv`, `json` or `parquet`, for a folder of files",
    "columns": "those that are captured; without it, all",
    "rows": "a condition that captured rows fulfil; without it, all are captured",
    "copy": "as for the source, for this table",
}
_VARIABLES = {
    project.SAFE: "folders of projects that belong to other users and are trusted, as in `PATH`",
    "SPARK_REMOTE": "the address of a Spark Connect server, where the file names no `master` or `remote`",
    "JAVA_HOME": "the Java that Spark runs on; then `java` on the PATH, then the `java` extra; at least version 17",
    "PYSPARK_PYTHON": "the Python of Spark's workers; the one that runs rollview by default",
}


def _rows(settings: type, meanings: Mapping[str, str]) -> list[tuple[str, ...]]:
    return [(f"`{one.name}`", _type(one.type), _default(one), meanings[one.name]) for one in fields(settings)]


def _type(annotation: Any) -> str:
    text = str(annotation).removesuffix(" | None")
    words = {"dict": "settings by name", "Glob": "settings", "list": "list", "Literal[1]": "`1`"}
    return next((word for start, word in words.items() if text.startswith(start)), "text")


def _default(field: Any) -> str:
    return "required" if field.default is MISSING else f"`{field.default}`" if field.default is not None else ""


def _cli_variables() -> dict[str, str]:
    found = {}
    for _, one in _commands(typer.main.get_command(application()), "rollview"):
        found.update({item.envvar: f"as `{item.opts[0]}`: {item.help}" for item in one.params if item.envvar})
    return found


def _conf(settings: Mapping[str, str]) -> str:
    return table(("setting", "value"), ((f"`{key}`", f"`{value}`") for key, value in settings.items()))


# SQL


def sql_page() -> str:
    parts = [
        HEADER,
        "# SQL\n",
        "Text is Spark's SQL, ANSI mode on. Names of tables, views and columns are compared without regard to case.\n",
        "## Views\n",
        "```text\nCREATE [OR REPLACE] MATERIALIZED VIEW name [(column, …)] [COMMENT 'text']\n"
        "  [TBLPROPERTIES ('key' = 'value', …)] AS query\nDROP MATERIALIZED VIEW name\n```\n",
        "A view reads tables and other views by their plain names. Every column of its result has a name.\n",
        *(_examples(how, said) for how, said in _WAYS.items()),
        "### Functions that are refused\n",
        "All other functions of Spark's own may be used; functions of your own may not, because nothing is known of\n"
        "their value.\n",
        table(("because", "functions"), _refused_functions()),
        _STATEMENTS,
    ]
    return "\n".join(parts)


_WAYS = {
    "linear": "### Linear: from the deltas\n",
    "keyed": "### Keyed: the touched keys are computed again, at each csn that touched them\n",
    "whole": "### Whole: recomputed, and the difference stored\n",
    "settled": "### Where SQL leaves a choice\n\n"
    "Rows that are equal in an order may come in any order. rollview makes the choice, the same in every run and at\n"
    "every csn: it goes on with the other columns that the query uses, until no tie matters. Keys, GROUP BY, DISTINCT\n"
    "and equalities tell it where none is left. `rollview view create` and `rollview view explain` say what was\n"
    "chosen, and the query is evaluated as shown. `'rollview.ties' = 'refuse'` in TBLPROPERTIES refuses such a view\n"
    "instead. Columns of a type that has no order, such as MAP, cannot decide: where they would have to, the view is\n"
    "refused.\n",
    "refused": "### Refused\n",
}

_STATEMENTS = """\
## Tables

```text
CREATE TABLE [IF NOT EXISTS] name (column type [NOT NULL] [PRIMARY KEY] [UNIQUE] [REFERENCES table (column)], …,
  [PRIMARY KEY (…)], [UNIQUE (…)], [FOREIGN KEY (…) REFERENCES table (…)])
CREATE TABLE name AS query
ALTER TABLE name ADD COLUMN … | DROP COLUMN … | RENAME COLUMN … TO … | ALTER COLUMN … | ADD CONSTRAINT … |
  DROP CONSTRAINT … | RENAME TO …
DROP TABLE name
```

A column has any of Spark's types that a Delta table holds: BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE,
DECIMAL, STRING, CHAR, VARCHAR, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY, MAP and STRUCT. Collations are refused.
Tables keep the sign of a zero. In a view −0.0 and 0.0 are one value, as in Spark's GROUP BY, and may be shown as 0.0.

## Changes

```text
INSERT INTO table [(column, …)] VALUES (…), … | query
UPDATE table SET column = value, … [WHERE …]
DELETE FROM table [WHERE …]
MERGE INTO table USING source ON … WHEN [NOT] MATCHED … THEN …
TRUNCATE TABLE table
```

Values are stored by Spark's ANSI store assignment: a cast that would lose range is an error, and text does not become a
number by itself. Changes that stand next to each other in one call are one transaction; anything between them ends it.

## Queries

Any query of Spark's. It reads all tables and views at the newest csn.
"""


def _examples(how: str, title: str) -> str:
    rows = []
    for example in EXAMPLES:
        kept, why = _kept(example)
        assert kept == example.how, f"{example.title} is {kept} ({why}), not {example.how}"
        if kept == how:
            rows.append((example.title, f"`{example.query}`", why))
    third = "is evaluated as" if how == "settled" else "why"
    return f"{title}\n" + table(("", "example", third), rows)


def _kept(example: Example) -> tuple[str, str]:
    """How the example is kept, and what ``explain`` says about it."""
    try:
        outline = view.outline(declare(f"CREATE MATERIALIZED VIEW v AS {example.query}"), _known())
    except SqlError as refusal:
        return "refused", str(refusal).split(" (line")[0]
    plan = view.plan(outline, _facts(outline, example))
    if outline.settled.notes:
        return "settled", f"`{outline.settled.text.strip()}`"
    worst = max(plan.operators, key=lambda note: ("linear", "keyed", "whole").index(note.how))
    return worst.how, worst.reason.replace(" (line 1)", "")


def _known() -> dict[str, Known]:
    return {name: Known(name, Schema(tuple(Column(*c) for c in columns))) for name, columns in TYPES.items()}


def _facts(outline: view.Outline, example: Example) -> dict[str, Any]:
    """Types that Spark would tell; which way an operator goes depends on those of the arguments alone."""
    every: dict[str, str] = _Every({}, example.type)
    return {"input": every, "results": every} if outline.probes else {}


class _Every(dict[str, str]):
    """One type for all columns."""

    def __init__(self, known: Mapping[str, str], type_: str) -> None:
        super().__init__(known)
        self.type = type_

    def __missing__(self, name: str) -> str:
        return self.type


def _refused_functions() -> Iterator[tuple[str, str]]:
    by_reason: dict[str, list[str]] = {}
    for name, reason in functions._REFUSED.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield reason, ", ".join(f"`{name}`" for name in sorted(names))


PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "config.md": config_page,
    "errors.md": errors_page,
    "python.md": lambda: python_page(HEADER),
    "sql.md": sql_page,
}

if __name__ == "__main__":
    sys.exit(main())
