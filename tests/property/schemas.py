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
)
