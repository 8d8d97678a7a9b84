"""Whether what a page shows is what is said: times, sizes and durations differ from run to run, nothing else may.

A shown line that is ``…`` alone stands for any number of lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ANY = "…"

_VARYING = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\.\d+)?( [A-Z]{2,5}\b|[+-]\d\d:?\d\d|Z)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d)? (B|KiB|MiB|GiB)\b"), "<size>"),
    (re.compile(r"(commits?), \d+ (s|min|h|d)\b"), r"\1, <age>"),
    (re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b(\d+)-[0-9a-f]{8}\b"), r"\1-<mark>"),
    (re.compile(r"\d+ <size> <size> \d+\.\d\d$"), "<jobs> <size> <size> <seconds>"),
    (re.compile(r"\b\d+\.\d\d s\b"), "<seconds>"),
    (re.compile(r"[─━]+"), "─"),
)


def differs(shown: Sequence[str], said: Sequence[str], *, in_any_order: bool = False) -> str | None:
    """The first difference, for people, or None."""
    wanted, given = _plain(shown), _plain(said)
    if in_any_order and ANY not in wanted:
        wanted, given = sorted(wanted), sorted(given)
    if _matches(wanted, given):
        return None
    return "\n".join(["shown:", *wanted, "", "said:", *given])


def _matches(wanted: list[str], given: list[str]) -> bool:
    if not wanted:
        return not given
    if wanted[0] == ANY:
        return any(_matches(wanted[1:], given[i:]) for i in range(len(given) + 1))
    return bool(given) and wanted[0] == given[0] and _matches(wanted[1:], given[1:])


def _plain(lines: Sequence[str]) -> list[str]:
    return [plain for line in lines if (plain := _plain_line(line))]


def _plain_line(line: str) -> str:
    line = " ".join(line.split())
    for pattern, name in _VARYING:
        line = " ".join(pattern.sub(name, line).split())
    return line
