"""Every pair of operators, as one expression each."""

from __future__ import annotations

from collections.abc import Iterator

_SIGNS = "= == <=> <> != < <= !> > >= !< | ^ & << >> >>> + - || * / % DIV AND OR"
BINARY = (*_SIGNS.split(), "LIKE", "NOT LIKE", "ILIKE", "RLIKE", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
PREFIX = ("-", "+", "~", "NOT", "!")
POSTFIX = (
    "::INT",
    "COLLATE UTF8_LCASE",
    "[0]",
    ".f",
    "IS NULL",
    "IS NOT NULL",
    "IS TRUE",
    "IS NOT FALSE",
    "IS UNKNOWN",
    "IN (d, e)",
    "NOT IN (d, e)",
    "!IN (d)",
    "BETWEEN d AND e",
    "NOT BETWEEN d AND e",
    "LIKE d ESCAPE '/'",
    "LIKE ANY ('d', 'e')",
)


def pairs() -> Iterator[str]:
    for one in BINARY:
        for other in BINARY:
            yield f"a {one} b {other} c"
        for sign in PREFIX:
            yield f"{sign} a {one} b"
            yield f"a {one} {sign} b"
        for behind in POSTFIX:
            yield f"a {behind} {one} b"
            yield f"a {one} b {behind}"
            yield f"a BETWEEN b AND c {one} d"
            yield f"a BETWEEN b {one} c AND d"
    for sign in PREFIX:
        yield from (f"{sign} {other} a" for other in PREFIX)
        for behind in POSTFIX:
            yield f"{sign} a {behind}"
        yield f"{sign} 1 ::STRING"
        yield f"{sign} 1.5 + 2 ::STRING"
    for one in POSTFIX[:-1]:
        yield from (f"a {one} {other}" for other in POSTFIX)
