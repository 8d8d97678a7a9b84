"""What is named after a subquery's columns would be named after what they are folded to, and is refused."""

from __future__ import annotations

import pytest

from rollview.algebra.fields import refuse_folded
from rollview.algebra.text import parse_one
from rollview.errors import Unsupported


@pytest.mark.parametrize("call", ["struct(*)", "to_json(struct(*))", "arrays_zip(Big, Big)"])
def test_a_value_named_after_columns_keeps_no_spelling(call: str) -> None:
    with pytest.raises(Unsupported, match="'Big', whose spelling is not kept"):
        refuse_folded(parse_one(f"SELECT {call} AS v FROM (SELECT k AS Big FROM t) AS q"))
    refuse_folded(parse_one(f"SELECT {call} AS v FROM (SELECT k AS big FROM t) AS q"))


@pytest.mark.parametrize("item", ["*", "q.*", "COUNT(*) AS n", "upper(Big) AS v", "struct(Big) AS v"])
def test_other_values_have_names_of_their_own(item: str) -> None:
    refuse_folded(parse_one(f"SELECT {item} FROM (SELECT k AS Big FROM t) AS q"))
