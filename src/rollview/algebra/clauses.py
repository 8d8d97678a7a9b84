"""Where the parts of a query's outermost SELECT stand in its text.

Law: a part is a stretch of words; comments between words belong to no part. So a part can be taken out of the text, and
all that its author wrote around it stays where it is, in its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from rollview.algebra.text import DIALECT

Span = tuple[int, int]
"""From a character of the text to the one behind the last."""

_JOINING = {
    TokenType.JOIN,
    TokenType.LEFT,
    TokenType.RIGHT,
    TokenType.FULL,
    TokenType.INNER,
    TokenType.CROSS,
    TokenType.NATURAL,
    TokenType.SEMI,
    TokenType.ANTI,
    TokenType.OUTER,
}
_ENDING = {
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.WINDOW,
    TokenType.LATERAL,
    TokenType.QUALIFY,
    TokenType.UNION,
    TokenType.EXCEPT,
    TokenType.INTERSECT,
    TokenType.SEMICOLON,
}


class PartKind(StrEnum):
    OUTPUT = "output"
    JOIN = "join"
    WHERE = "condition"
    HAVING = "condition on groups"


@dataclass(frozen=True, slots=True)
class TextPart:
    """``cuts``: itself, and the comma or AND that stands before it."""

    kind: PartKind
    number: int
    span: Span
    cuts: tuple[Span, ...]

    def holds(self, place: int) -> bool:
        return self.span[0] <= place < self.span[1]


@dataclass(frozen=True, slots=True)
class Clauses:
    """``words``: of WHERE and HAVING, which go with the last of their conditions."""

    parts: tuple[TextPart, ...]
    words: dict[PartKind, Span]

    def of(self, kind: PartKind) -> tuple[TextPart, ...]:
        return tuple(part for part in self.parts if part.kind is kind)

    def at(self, place: int) -> TextPart | None:
        return next((part for part in self.parts if part.holds(place)), None)


def clauses_of(text: str) -> Clauses:
    """Of a text whose outermost query is one SELECT, behind WITH or not."""
    clauses = _Clauses(DIALECT().tokenize(text))
    return Clauses(tuple(clauses.parts), clauses.words)


def without(text: str, clauses: Clauses, gone: Iterable[TextPart]) -> list[tuple[Span, str]]:
    """The edits that take parts out of the text."""
    cut: list[Span] = []
    gone = list(gone)
    for kind in PartKind:
        all_, own = clauses.of(kind), [part for part in gone if part.kind is kind]
        if not own:
            continue
        if kind is PartKind.JOIN:
            cut += [span for part in own for span in part.cuts]
        elif len(own) == len(all_):
            cut += [clauses.words[kind], *(span for part in all_ for span in part.cuts)]
        else:
            cut += _listed(all_, own)
    return [(span, "") for span in sorted(set(cut))]


def _listed(all_: Sequence[TextPart], gone: Sequence[TextPart]) -> list[Span]:
    """Each with the word that stands before it; the first that stays loses its own, if others stood before it."""
    first = next(part for part in all_ if part not in gone)
    return [*first.cuts[1:], *(span for part in gone for span in part.cuts)]


def edited(text: str, edits: Iterable[tuple[Span, str]]) -> str:
    """The text with stretches replaced; none of them overlap."""
    for (first, behind), new in sorted(edits, reverse=True):
        text = text[:first] + new + text[behind:]
    return text


class _Clauses:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.parts: list[TextPart] = []
        self.words: dict[PartKind, Span] = {}
        self._tokens = [(token, depth) for token, depth in _with_depth(tokens)]
        self._read()

    def _read(self) -> None:
        top = [place for place, (_, depth) in enumerate(self._tokens) if depth == 0]
        begin = self._first(top, {TokenType.SELECT})
        if begin is None:
            return
        top = top[top.index(begin) :]
        from_ = self._first(top, {TokenType.FROM})
        end = self._first(top, {TokenType.FROM, *_ENDING})
        first = begin + 1
        while first < len(self._tokens) and self._kind(first) in (TokenType.DISTINCT, TokenType.ALL, TokenType.HINT):
            first += 1
        self._split(PartKind.OUTPUT, first, end or len(self._tokens), {TokenType.COMMA})
        if from_ is None:
            return
        behind = self._end(top, from_, {TokenType.WHERE, TokenType.HAVING})
        self._joins(from_ + 1, behind)
        for kind, word in ((PartKind.WHERE, TokenType.WHERE), (PartKind.HAVING, TokenType.HAVING)):
            place = self._first(top[top.index(from_) :], {word})
            if place is not None:
                token = self._tokens[place][0]
                self.words[kind] = (token.start, token.end + 1)
                others = {TokenType.WHERE, TokenType.HAVING} - {word}
                self._conditions(kind, place + 1, self._end(top, place, others))

    def _kind(self, place: int) -> TokenType:
        return self._tokens[place][0].token_type

    def _first(self, places: Iterable[int], kinds: set[TokenType]) -> int | None:
        return next((place for place in places if self._kind(place) in kinds), None)

    def _end(self, top: Sequence[int], after: int, more: set[TokenType]) -> int:
        found = self._first([place for place in top if place > after], _ENDING | more)
        return len(self._tokens) if found is None else found

    def _span(self, first: int, behind: int) -> Span:
        return self._tokens[first][0].start, self._tokens[behind - 1][0].end + 1

    def _is_call(self, place: int) -> bool:
        """LEFT and RIGHT are functions too; a comma or a JOIN may stand before a parenthesis."""
        calls = self._kind(place) in (TokenType.LEFT, TokenType.RIGHT) and place + 1 < len(self._tokens)
        return calls and self._kind(place + 1) is TokenType.L_PAREN

    def _split(self, kind: PartKind, first: int, behind: int, between: set[TokenType]) -> None:
        begin, number = first, 0
        before: tuple[Span, ...] = ()
        for place in range(first, behind + 1):
            if place < behind and not (self._tokens[place][1] == 0 and self._kind(place) in between):
                continue
            if place > begin:
                span = self._span(begin, place)
                self.parts.append(TextPart(kind, number, span, (span, *before)))
            if place < behind:
                before = (self._span(place, place + 1),)
            begin, number = place + 1, number + 1

    def _conditions(self, kind: PartKind, first: int, behind: int) -> None:
        """The conjuncts; one, where an OR holds them together. The AND of BETWEEN is none of ours."""
        kinds = [self._kind(place) for place in range(first, behind) if self._tokens[place][1] == 0]
        splits = TokenType.OR not in kinds and TokenType.XOR not in kinds
        self._split(kind, first, behind, {TokenType.AND} if splits else set())

    def _joins(self, first: int, behind: int) -> None:
        starts = []
        for place in range(first, behind):
            kind, depth = self._kind(place), self._tokens[place][1]
            if depth or (kind not in _JOINING and kind is not TokenType.COMMA) or self._is_call(place):
                continue
            if place == first or self._kind(place - 1) not in _JOINING or self._tokens[place - 1][1]:
                starts.append(place)
        for number, (start, end) in enumerate(pairwise([*starts, behind])):
            span = self._span(start, end)
            self.parts.append(TextPart(PartKind.JOIN, number, span, (span,)))


def _with_depth(tokens: Sequence[Token]) -> Iterable[tuple[Token, int]]:
    """Each word, and how deep it stands in parentheses, CASE … END and BETWEEN … AND."""
    depth, open_ = 0, 0
    for token in tokens:
        kind = token.token_type
        if kind in (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END):
            depth -= 1
        if kind is TokenType.AND and open_ and depth == 0:
            open_ -= 1
            yield token, 1
        else:
            yield token, depth
        if kind is TokenType.BETWEEN and depth == 0:
            open_ += 1
        if kind in (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE):
            depth += 1
