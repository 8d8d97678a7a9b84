"""What an operator is: a file in ``operators`` that answers all that is asked here, and a line in ``operator_table``.

Law: an operator is a function from timed multisets to a timed multiset with the given columns. It is an immutable value
that checks itself when built, so a wrong tree cannot exist. Names inside an operator are its own: a ``Block`` sees its
inputs by alias, the others see their input's columns bare.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar

from sqlglot import exp

from rollview.algebra.kinds import Kinds
from rollview.algebra.script import Script


class Upkeep(StrEnum):
    """How the delta of an operator is found."""

    LINEAR = "linear"
    """From its inputs' deltas, row by row or joined with old rows."""
    KEYED = "keyed"
    """By looking again at all rows of the touched keys, so that whole old states are grouped."""


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """A line of ``explain``."""

    operator: str
    how: str
    reason: str


class Operator(Protocol):
    """Nothing here has a default: what an operator leaves out, ``operator_table`` refuses when it is imported."""

    words: ClassVar[tuple[str, ...]]
    """How it is written in SQL, for example ``LEFT JOIN``; no two operators share words."""
    upkeep: ClassVar[Upkeep]
    renames: ClassVar[bool]
    """Whether its columns have names that ``build`` made up, and not those of the view's author."""

    @classmethod
    def build(cls, piece: Any) -> Operator:
        """From the piece of a query with its words; raises NotIncremental if that piece has no incremental rule."""

    @property
    def inputs(self) -> tuple[Operator, ...]: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def reads_states(self) -> bool:
        """Whether it may look at rows of its inputs that did not change."""

    def pruned(self, wanted: Set[str]) -> Operator:
        """The same relation with at least the wanted columns and at least one; its inputs carry no more than it needs.

        A multiset projected keeps its multiplicities, so a delta of fewer columns is the delta of the fewer columns.
        """

    def kinds_of(self, name: str) -> Kinds:
        """What the values of a column may be; when in doubt, floating."""

    def type_of(self, name: str) -> str | None:
        """The type of a column, as far as stored types and plain expressions tell; else None."""

    def origin(self, column: exp.Column) -> exp.Expr:
        """What a column of its own stands for in the author's words, for ``explain``."""

    def note(self) -> OperatorNote | None:
        """How it is maintained, for ``explain``; None where there is nothing to tell."""

    def delta(self, script: Script) -> exp.Query | exp.Table:
        """The timed delta: its columns, ``_count`` and ``_csn``. A table where it is stored."""

    def old(self, script: Script) -> exp.Query | exp.Table:
        """The state at the interval's start: its columns and ``_count``. A table where it is stored."""

    def timed(self, script: Script) -> exp.Query | exp.Table:
        """Both in one: as ``delta``, with the rows of ``old`` at csn 0."""


@dataclass(frozen=True, slots=True)
class Output:
    """A named expression."""

    name: str
    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class Input:
    """An operator, and the name under which the expressions above it see its columns."""

    alias: str
    rel: Operator


LEFT_SIDE, RIGHT_SIDE = "l", "r"
"""The aliases under which the condition of a join sees its sides."""


def walk(rel: Operator) -> Iterator[Operator]:
    """The operator and all below it, top first."""
    yield rel
    for child in rel.inputs:
        yield from walk(child)


def check_names_differ(names: tuple[str, ...]) -> None:
    if len({name.lower() for name in names}) != len(names):
        raise ValueError(f"names must differ: {names}")


_T = TypeVar("_T", bound=type[Operator])
_PARTS = tuple(name for name in (*Operator.__annotations__, *vars(Operator)) if not name.startswith("_"))


def check_complete(operator: _T) -> _T:
    """The operator, if it answers all that is asked of one."""
    missing = [part for part in _PARTS if not hasattr(operator, part)]
    if missing:
        raise TypeError(f"the operator {operator.__name__} lacks {', '.join(missing)}")
    return operator
