"""Words that reach beyond the warehouse are refused as calls, and are names and texts like any other elsewhere."""

from __future__ import annotations

import pytest

from rollview.algebra.unsafe import refuse_unsafe
from rollview.errors import Unsafe


@pytest.mark.parametrize(
    "text",
    [
        "SELECT reflect('java.lang.System', 'exit') AS x FROM t",
        "SELECT `Reflect` ('a', 'b') AS x FROM t",
        "SELECT x FROM IDENTIFIER('t')",
        "SELECT TRANSFORM (a) USING 'cat' FROM t",
    ],
)
def test_what_is_called_is_refused(text: str) -> None:
    with pytest.raises(Unsafe):
        refuse_unsafe(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT reflect, identifier FROM read_files",
        "SELECT x IN ('reflect') AS y FROM t",
        "SELECT 'reflect' ('a', 'b') AS x FROM t",
        'SELECT x AS "reflect" FROM t',
        "SELECT 'using' 'cat' AS x FROM t",
        "SELECT x FROM t JOIN u USING (k)",
    ],
)
def test_names_and_texts_are_not_calls(text: str) -> None:
    refuse_unsafe(text)
