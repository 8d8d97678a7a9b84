"""The author's own words: the text that a node was parsed from, with other tables put where it names some.

Law: nothing of the text but the names of tables changes, so whatever Spark makes of it is what the author wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

_TEXT, _FIRST, _BEHIND = "rollview_text", "rollview_first", "rollview_behind"
_SPAN = "rollview_span"


@dataclass(frozen=True, slots=True)
class Words:
    """``pieces`` of the text, with a table between each two of them: the relation that ``tables`` names."""

    pieces: tuple[str, ...]
    tables: tuple[str, ...]

    def with_tables(self, write: Callable[[str], str], keep: Callable[[str], str] = str) -> str:
        """The text; ``write`` says what stands for a table, ``keep`` writes a piece of the author's."""
        found = [keep(self.pieces[0])]
        for table, piece in zip(self.tables, self.pieces[1:], strict=True):
            found += [write(table), keep(piece)]
        return "".join(found)


def remember(node: exp.Expr, text: str, first: int, behind: int) -> None:
    """The node was parsed from ``text[first:behind]``."""
    node.meta.update({_TEXT: text, _FIRST: first, _BEHIND: behind})


def set_span(node: exp.Expr, first: int, behind: int) -> None:
    """Where a part of a query stands in the text, which it keeps whatever is made of what is around it."""
    node.meta[_SPAN] = (first, behind)


def find_span(node: exp.Expr) -> tuple[int, int] | None:
    return node.meta[_SPAN] if node._meta and _SPAN in node.meta else None


def forget(node: exp.Expr) -> None:
    """The node is no longer what was written, and nothing around it is."""
    changed: exp.Expr | None = node
    while changed is not None:
        if changed._meta:
            changed._meta.pop(_TEXT, None)
        changed = changed.parent


def is_written(node: exp.Expr) -> bool:
    return bool(node._meta) and _TEXT in node.meta


def spelled(node: exp.Expr) -> str | None:
    """As the author wrote it; None for what was made here."""
    return str(node.meta[_TEXT])[node.meta[_FIRST] : node.meta[_BEHIND]] if is_written(node) else None


def in_place(node: exp.Expr) -> str | None:
    """The same, behind as many line breaks and blanks as stood before it, so that errors name the author's lines."""
    own = spelled(node)
    if own is None:
        return None
    before = str(node.meta[_TEXT])[: node.meta[_FIRST]]
    column = len(before) - (before.rfind("\n") + 1)
    return "\n" * before.count("\n") + " " * column + own


def in_words(tree: exp.Expr, tables: Iterable[tuple[exp.Table, str]]) -> exp.Expr:
    """The tree with its author's own text for all that was not made here; ``tables`` are called otherwise in it."""
    within: dict[int, list[tuple[exp.Table, str]]] = {}
    for table, name in tables:
        node: exp.Expr | None = table
        while node is not None:
            within.setdefault(id(node), []).append((table, name))
            node = node.parent
    return _spoken(tree, within)


def _spoken(node: exp.Expr, within: Mapping[int, list[tuple[exp.Table, str]]]) -> exp.Expr:
    found = words(node, within.get(id(node), ())) if is_written(node) else None
    if found is not None:
        text = found.with_tables(lambda name: exp.to_identifier(name, quoted=True).sql("spark"))
        said = exp.Var(this=text if isinstance(node, exp.Query) else f"({text})")
        if node.parent is not None:
            node.replace(said)
        return said
    for child in list(node.iter_expressions()):
        _spoken(child, within)
    return node


def words(node: exp.Expr, tables: Iterable[tuple[exp.Table, str]]) -> Words | None:
    """The node's text with ``tables``, references in it and the relations that they mean, cut out.

    What the text calls a table it calls it still. None where a place is not known.
    """
    own = spelled(node)
    if own is None:
        return None
    cuts = []
    for table, relation in tables:
        name = table.this
        if "start" not in name.meta:
            return None
        first, behind = (int(name.meta[end]) - node.meta[_FIRST] for end in ("start", "end"))
        cuts.append((first, behind + 1, *_around(table), relation))
    return _cut(own, sorted(set(cuts)))


def _cut(own: str, cuts: list[tuple[int, int, str, str, str]]) -> Words | None:
    pieces, place, after = [], 0, ""
    for first, behind, opening, closing, _ in cuts:
        before = own[place:first]
        if first < place or behind > len(own) or before.rstrip().upper().endswith("TABLE"):
            return None
        pieces.append(after + before + opening)
        place, after = behind, closing
    return Words((*pieces, after + own[place:]), tuple(relation for *_, relation in cuts))


def _around(table: exp.Table) -> tuple[str, str]:
    """A table without an alias is called by its name, whatever stands there for it, and whatever follows."""
    if table.args.get("alias") is not None:
        return "", ""
    return "(", f" AS {exp.to_identifier(table.name, quoted=True).sql('spark')})"
