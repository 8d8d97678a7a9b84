"""A column as a statement in the log declares it.

Law: a type, and what older rows have in a new column, are told only where every word is understood; else nobody can
tell, and that is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rollview.sources.binlog.layout import ColumnLayout, spark_type
from rollview.types.spelling import widens

_TYPE = re.compile(r"(\w+)(?:\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?(\s+UNSIGNED\b)?", re.I)
_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TEXT = r"'(?:[^'\\]|'')*'"
_WORDS = re.compile(
    rf"""\s*(?:(?P<required>NOT\s+NULL)|(?P<optional>NULL)|COMMENT\s+{_TEXT}|FIRST\b|AFTER\s+{_NAME}
        |DEFAULT\s+(?:(?P<nothing>NULL\b)|(?P<number>-?\s*\d+(?:\s*\.\s*\d+)?(?![\w.(]))|(?P<text>{_TEXT})))""",
    re.I | re.X,
)
_SPELLED = {"integer": "int", "numeric": "decimal", "dec": "decimal"}
WHOLE = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("varchar", "tinytext", "text", "mediumtext", "longtext")
_KINDS = (*WHOLE, *_TEXTS, "decimal", "date", "datetime", "float", "double")


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """``type``: Spark's; None: nobody can tell. ``is_constant``: older rows have ``fill`` in it, or NULL."""

    recorded: tuple[str, str, int | None]
    type: str | None
    is_constant: bool = False
    fill: str | None = None


def declared(text: str) -> DeclaredColumn:
    """What stands behind a column's name."""
    found = _TYPE.match(text)
    kind = "" if found is None else _SPELLED.get(found[1].lower(), found[1].lower())
    if found is None or kind not in _KINDS:
        return DeclaredColumn((kind, text, None), None)
    length, scale = (None if one is None else int(one) for one in found.group(2, 3))
    arguments = ",".join(str(one) for one in (length, scale) if one is not None)
    spelled = kind + (f"({arguments})" if arguments else "") + (" unsigned" if found[4] else "")
    if kind == "decimal" and length is None:
        length, scale = 10, 0
    about = (length, scale or 0, True, length, False, "utf8mb4" if kind in _TEXTS else None)
    layout = ColumnLayout("", kind, spelled, *about)
    recorded = (kind, spelled, length)
    if kind in ("float", "double") and arguments:
        return DeclaredColumn(recorded, None)
    type_ = spark_type(layout)
    words = _words(text[found.end() :])
    if type_ is None or words is None:
        return DeclaredColumn(recorded, type_ if words is not None else None)
    return DeclaredColumn(recorded, type_, *_fill(kind, type_, scale or 0, words))


def keeps_values(old: str, new: str) -> bool:
    """Whether a column that gets another type, both Spark's, has the values that it had."""
    return old == new or widens(old, new)


def _words(text: str) -> dict[str, str] | None:
    """What is said of the column besides; None if something is not understood."""
    words: dict[str, str] = {}
    place = 0
    while text[place:].strip():
        found = _WORDS.match(text, place)
        if found is None:
            return None
        words |= {name: word for name, word in found.groupdict().items() if word is not None}
        place = found.end()
    return words


def _fill(kind: str, type_: str, scale: int, words: dict[str, str]) -> tuple[bool, str | None]:
    if "number" not in words and "text" not in words:
        implied = {**dict.fromkeys(WHOLE, "0"), **dict.fromkeys(_TEXTS, "")}.get(kind)
        if "required" in words and "nothing" not in words:
            return (implied is not None, implied)
        return True, None
    text = words["text"][1:-1].replace("''", "'") if "text" in words else "".join(words["number"].split())
    if kind in WHOLE:
        return (True, str(int(text))) if re.fullmatch(r"-?\d+", text) else (False, None)
    if kind == "decimal":
        exact = re.fullmatch(rf"-?\d+(\.\d{{0,{scale}}})?", text)
        return (True, text) if exact and not text.endswith(".") else (False, None)
    if kind == "date":
        return (True, text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) and text >= "0001" else (False, None)
    return (True, text) if kind in _TEXTS else (False, None)
