"""Parsing: SQL text in, sqlglot trees out, with every failure told as a place in the text."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.tokenizer_core import TokenType

from rollview.algebra.dialect import VerbatimSpark
from rollview.errors import EnvironmentFault, SqlError

DIALECT = VerbatimSpark
_PLACE = re.compile(r"Line:? (\d+), Col:? (\d+)", re.IGNORECASE)
_CONTINUED = "\\\n"
_UNDERLINE = re.compile(r"\x1b\[\d+m")

# What sqlglot does not know is refused here by name; its own warning would stand before the refusal.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_statements(text: str) -> tuple[exp.Expr, ...]:
    """All statements of a text; empty ones, and comments alone, are passed over."""
    _refuse_continued_comments(text)
    try:
        trees = sqlglot.parse(text, dialect=DIALECT)
    except (ParseError, TokenError) as error:
        raise _syntax_error(error) from error
    except TypeError as error:
        raise (_cannot_parse() if _is_compiled() else error) from None
    return tuple(tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon))


def _is_compiled() -> bool:
    """Whether sqlglot is the package's compiled form, of which no dialect of one's own can be made."""
    return not str(sqlglot.parser.__file__).endswith(".py")


def _cannot_parse() -> EnvironmentFault:
    return EnvironmentFault(
        "The compiled form of sqlglot is installed, and it reads SQL by its own rules only.",
        hint="Remove it, sqlglot itself stays: pip uninstall sqlglotc",
    )


def tokens_of(text: str) -> list[tuple[bool, int, int]]:
    """Of each token: whether it is a semicolon, where it begins, and where it ends."""
    try:
        tokens = DIALECT().tokenize(text)
    except TokenError as error:
        raise _syntax_error(error) from error
    return [(token.token_type is TokenType.SEMICOLON, token.start, token.end + 1) for token in tokens]


def _refuse_continued_comments(text: str) -> None:
    """To Spark a comment whose line ends in a backslash goes on in the next line; to the parser it ends there, and what
    the author hides in it would be read by one and not by the other."""
    if _CONTINUED not in text:
        return
    tokens = tokens_of(text)
    begins = [0, *(end for _, _, end in tokens)]
    ends = [*(begin for _, begin, _ in tokens), len(text)]
    for begin, end in zip(begins, ends, strict=True):
        if _CONTINUED in text[begin:end]:
            line = text.count("\n", 0, text.index(_CONTINUED, begin)) + 1
            raise SqlError("A comment ends in a backslash.", line=line, hint="Leave the backslash out.")


def parse_one(text: str) -> exp.Expr:
    trees = parse_statements(text)
    if len(trees) != 1:
        raise SqlError(f"Expected one statement, found {len(trees)}.")
    return trees[0]


def render(tree: exp.Expr, *, pretty: bool = False) -> str:
    return tree.sql(DIALECT, pretty=pretty)


def place_of(node: exp.Expr) -> tuple[int | None, int | None]:
    """Line and column of the first word of the node that remembers where it stood."""
    return min((place for part in node.walk() if (place := _own_place(part)) is not None), default=(None, None))


def _own_place(node: exp.Expr) -> tuple[int, int] | None:
    if "line" not in node.meta:
        return None
    line, end = node.meta["line"], node.meta["col"]
    width = node.meta["end"] - node.meta["start"] if "start" in node.meta else 0
    return int(line), max(int(end) - int(width), 1)


_UNKNOWN_COLUMN = re.compile(
    r"(?:Column '(.+?)' could not be resolved(?: for table: '(.+?)')?|Unknown column: (.+?))[.]?$"
)
_UNKNOWN_TABLE = re.compile(r"Unknown table: (.+)")


def resolution_error(error: SqlglotError, tree: exp.Expr, candidates: Sequence[tuple[str, Sequence[str]]]) -> SqlError:
    """Names that do not resolve, told as unknown or ambiguous. ``candidates``: relations and their columns."""
    message = _PLACE.sub("", str(error)).strip(" .,")
    found, table = _UNKNOWN_COLUMN.search(message), _UNKNOWN_TABLE.search(message)
    if found is None and table is None:
        return SqlError(f"The query does not resolve: {message}.")
    alias = table.group(1) if table else found.group(2) if found else None
    name = (found.group(1) or found.group(3)) if found else "*"
    line, column = _place_of_column(tree, alias, name)
    if alias is not None:
        listed = ", ".join(sorted({item.alias_or_name for item in tree.find_all(exp.Table)}))
        return SqlError(
            f"There is no table or alias '{alias}' here.", line=line, column=column, hint=f"FROM has: {listed}."
        )
    holders = [relation for relation, columns in candidates if name.lower() in {c.lower() for c in columns}]
    if len(holders) > 1:
        listed = " and ".join(f"'{holder}'" for holder in holders)
        return SqlError(
            f"Column '{name}' is ambiguous: it is in {listed}.",
            line=line,
            column=column,
            hint="Write the table's name or alias before it.",
        )
    known = sorted({column for _, columns in candidates for column in columns})
    return SqlError(
        f"There is no column '{name}'.",
        line=line,
        column=column,
        hint=f"Columns here: {', '.join(known)}.",
        missing=name,
        relations=[relation for relation, _ in candidates],
    )


def _place_of_column(tree: exp.Expr, alias: str | None, name: str) -> tuple[int | None, int | None]:
    for node in tree.find_all(exp.Column):
        if node.name.lower() == name.lower() and (alias is None or node.table.lower() == alias.lower()):
            return place_of(node)
    return None, None


def _syntax_error(error: ParseError | TokenError) -> SqlError:
    if errors := getattr(error, "errors", ()):
        first = errors[0]
        near = f"{first.get('highlight') or ''}".strip()
        said = str(first.get("description") or "it cannot be parsed").rstrip(".")
        said = "something is missing after it" if said.startswith("Required keyword") else said
        at = f" near '{near}'" if near else ""
        return SqlError(f"The SQL is not right{at}: {said}.", line=first.get("line"), column=first.get("col"))
    line, column = _place_in(str(error))
    said = _UNDERLINE.sub("", str(error)).splitlines()[0]
    return SqlError(f"The SQL is not right: {said}", line=line, column=column)


def _place_in(message: str) -> tuple[int | None, int | None]:
    found = _PLACE.search(message)
    return (int(found.group(1)), int(found.group(2))) if found else (None, None)
