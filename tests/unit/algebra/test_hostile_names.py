"""Names with quotes, dots, line ends and words of SQL pass through every rule and change nothing."""

from __future__ import annotations

from random import Random

import pytest
from tests.property.duck import Duck, View
from tests.property.histories import random_history
from tests.sizes import times

from rollview.algebra.resolve import Known
from rollview.core.schema import Column, Constraints, ForeignKey, Schema

NAMES = [
    *(
        "it's",
        'say "x"',
        "back`tick",
        "a.b.c",
        "x@old",
        "x@delta",
        "new\nline",
        "tab\tbed",
        "select",
        "GROUP BY",
        "Ünï",
    ),
    *(
        "日本",
        "😀",
        "a;DROP TABLE r",
        "--no",
        "/*no*/",
        "{x}",
        "$$",
        "%s",
        "\\",
        "\\'",
        "a b",
        "_count_",
        "t",
        "n",
        "l",
    ),
    *("r", "g", "k1", "totals", "100%", "?", ":p", "*", "(", "u", "row", "a1", "v1", "j1", "NULL", "true", "\u202ertl"),
    "e\u0301",
]
QUERIES = [
    "SELECT a.{c} AS {d}, b.{c} FROM {t} AS a JOIN {u} AS b ON a.{c} = b.{d}",
    "SELECT {t}.{c}, {u}.{d} FROM {t} LEFT JOIN {u} ON {t}.{c} = {u}.{c}",
    "SELECT {c}, COUNT(*) AS {d} FROM {t} GROUP BY {c}",
    "SELECT {c} AS {d}, MAX({d}) AS {c} FROM {t} GROUP BY {c}",
    "WITH {d} AS (SELECT {c} FROM {t}) SELECT {d}.{c} FROM {d} UNION SELECT {c} FROM {u}",
]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def tables(one: str, two: str) -> tuple[Known, Known]:
    schema = Schema((Column(one, "int"), Column(two, "int")))
    parent = Known(two, schema, Constraints(primary_key=(one,)))
    return parent, Known(one, schema, Constraints(foreign_keys=(ForeignKey((two,), two, (one,)),)))


@pytest.mark.parametrize("i", range(len(NAMES)))
def test_a_hostile_name_in_every_place(i: int) -> None:
    one, two = NAMES[i], NAMES[(i * 7 + 3) % len(NAMES)]
    if one.lower() == two.lower():
        two = "other"
    parent, child = tables(one, two)
    random = Random(i)
    duck = Duck((parent, child))
    for csn, transaction in enumerate(random_history(random, (parent, child), 5), 1):
        duck.commit(csn, transaction)
    for turn in range(times(1, full=len(QUERIES))):
        at = (i + turn) % len(QUERIES)
        query = QUERIES[at]
        text = query.format(c=quoted(one), d=quoted(two), t=quoted(child.name), u=quoted(parent.name))
        view = View(duck, f"view {at}", duck.compile("v", text), 1)
        view.propagate(4)
        view.propagate(5)
        for csn in range(1, 6):
            assert view.at(csn) == view.recompute(csn), f"{text!r} at {csn}"
