"""SQL that reaches beyond the warehouse: it runs programs or Java, or reads any file that this user may read.

Law: whatever Spark would run or read on behalf of a text is refused by the words of the text themselves, whatever the
parser makes of them; so a text that somebody else wrote can be run without reading it first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from rollview.algebra.text import DIALECT
from rollview.errors import Unsafe

_JAVA = "it calls any Java method, with the rights of this process"
_PROGRAM = "it runs a program on the machines of Spark"
_FILES = "it reads any file that this process may read"
_ANY_NAME = "it calls or reads whatever its text names"

_CALLS = {
    **dict.fromkeys(("java_method", "reflect", "try_reflect"), _JAVA),
    **dict.fromkeys(("read_files", "cloud_files", "read_kafka"), _FILES),
    # IDENTIFIER('ref' || 'lect')(…) is a call, and FROM IDENTIFIER('csv.`/x`') a file.
    "identifier": _ANY_NAME,
}
_TEXTS = frozenset(
    kind
    for kind in TokenType
    if kind.name.endswith("_STRING") or kind.name in ("STRING", "HEREDOC_STRING", "NATIONAL_STRING")
)
PATH = _FILES
"""Why a path in the place of a table is refused."""


def refuse_unsafe(text: str) -> None:
    for token, name, reason in _found(_tokens(text)):
        raise Unsafe(name, reason, token.line, max(token.col - len(token.text) + 1, 1))


def _found(tokens: Sequence[Token]) -> Iterator[tuple[Token, str, str]]:
    for token, following in pairwise(tokens):
        word = token.text.lower()
        is_name = token.token_type not in _TEXTS
        if is_name and word in _CALLS and following.token_type is TokenType.L_PAREN:
            yield token, word, _CALLS[word]
        # A program follows TRANSFORM, MAP or REDUCE; behind any other USING no text can stand.
        elif is_name and word == "using" and following.token_type in _TEXTS:
            yield token, "TRANSFORM … USING", _PROGRAM


def _tokens(text: str) -> Sequence[Token]:
    try:
        return DIALECT().tokenize(text)
    # Whoever parses it tells what is wrong.
    except TokenError:
        return ()
