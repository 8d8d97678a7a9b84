"""The tables that random views and histories are made over: one set without keys, one with keys and foreign keys."""

from __future__ import annotations

from rollview.algebra.resolve import Known
from rollview.core.schema import Column, Constraints, ForeignKey, Schema


def _known(name: str, columns: str, constraints: Constraints | None = None) -> Known:
    pairs = (item.split() for item in columns.split(", "))
    return Known(name, Schema(tuple(Column(column, type_) for column, type_ in pairs)), constraints or Constraints())


BAGS = (
    _known("r", "k int, g int, x int, w string"),
    _known("s", "k int, y decimal(8,2), w string"),
    _known("t", "k int, g int, z double"),
    _known("e", "k int, f boolean, d date"),
)

KEYED = (
    _known("p", "id int, g int, w string", Constraints(primary_key=("id",))),
    _known(
        "c",
        "id int, pid int, x int",
        Constraints(primary_key=("id",), foreign_keys=(ForeignKey(("pid",), "p", ("id",)),)),
    ),
    _known(
        "d",
        "cid int, y decimal(8,2)",
        Constraints(foreign_keys=(ForeignKey(("cid",), "c", ("id",)),)),
    ),
    _known("o", "a int, b int, x int", Constraints(primary_key=("a", "b"))),
    _known("h", "id int, code int, v int", Constraints(("id",), unique=(("code",),), not_null=("code",))),
    _known("j", "code int, m int", Constraints(foreign_keys=(ForeignKey(("code",), "h", ("code",)),))),
    _known("l", "a int, b int, n int", Constraints(foreign_keys=(ForeignKey(("a", "b"), "o", ("a", "b")),))),
)

HOSTILE = (
    Known(
        "Order's `table`@delta; DROP",
        Schema(tuple(Column(name, "int") for name in ("a b", 'qu"ote', "back`tick", "do.t", "new\nline"))),
    ),
    Known("select", Schema(tuple(Column(name, "int") for name in ("from", "Üñï", "k@old", "GROUP", "a.b.c", "{x}")))),
)
