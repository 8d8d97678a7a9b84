"""Wrong rows: what Spark makes of an author's text is what rollview makes of it."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rollview.algebra.levels import parenthesised
from rollview.algebra.text import parse_one, render
from tests.audit.operators import pairs
from tests.audit.readings import strikes
from tests.golden import cases
from tests.property.definitions import Definitions
from tests.property.schemas import BAGS, HOSTILE, KEYED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_pair_of_operators_binds_as_in_spark(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    seen, otherwise = 0, []
    for text in dict.fromkeys(pairs()):
        meant = _parsed(parser, text)
        if meant is not None:
            tree = parse_one(f"SELECT ({text})").selects[0]
            in_full, written = render(parenthesised(tree.copy(), always=True)), render(tree)
            wrong = [found for found in (in_full, written) if _parsed(parser, found) != meant]
            otherwise += [f"{text} is taken for {found}" for found in wrong]
            seen += 1
    assert not otherwise, "\n".join(otherwise)
    assert seen > 1500


def _parsed(parser: Any, text: str) -> str | None:
    """What Spark's own parser makes of an expression; None if it takes it for none, or for one with a name."""
    try:
        parsed = parser.parseExpression(f"({text})")
    except Exception:
        return None
    return str(parsed.toString()).replace("isnotnull(", "NOT isnull(")


GOLDEN = Path(__file__).parents[1] / "golden"


def test_no_form_that_is_kept_by_deltas_is_read_otherwise_than_by_spark(spark: SparkSession) -> None:
    """What the check at creation would strike: no definition of the golden files, none of the random ones."""
    golden = [(case.text, case.columns) for path in sorted(GOLDEN.glob("*.sql")) for case in cases.read(path)]
    assert not strikes(spark, golden, (*BAGS, *KEYED, *HOSTILE))
    for tables in (BAGS, KEYED):
        drawn = [(Definitions(Random(seed), tables).view(), ()) for seed in range(60)]
        assert not strikes(spark, drawn, tables)
