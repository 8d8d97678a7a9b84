"""A view as the Strobe papers write it: a natural join of selected tables, projected.

Law: π(σ(R1 × … × Rn)) = π(σ1(R1) ⋈ … ⋈ σn(Rn)) where every condition is an equality of columns of two tables, which
makes them one column of the natural join, or looks at one table alone. Rows with NULL in a column that is compared
join with nothing, so σ leaves them out too. A table that is read twice is two tables that change together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sqlglot import exp

from rollview.algebra.equalities import KEY_TYPES, ColumnClasses, Place, tied
from rollview.algebra.expressions import columns_in
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.routes import NotAskableError
from rollview.algebra.text import render
from rollview.algebra.view import ViewPlan
from rollview.consistency.join_view import COMPARES, JoinView, Occurrence

_SIGNS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT = (*KEY_TYPES, "boolean", "date", "timestamp", "timestamp_ntz", "binary")
"""Types whose values are equal here where Spark takes them for equal."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A condition on one column of one table."""

    column: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table at one place of the join. ``columns``: its own names of those that the join knows, in the same order.
    ``compared``: those of them that other tables have too."""

    relation: str
    columns: tuple[str, ...]
    compared: tuple[str, ...]
    tests: tuple[ColumnTest, ...]

    def selects(self, row: Mapping[str, Any]) -> bool:
        return all(row[name] is not None for name in self.compared) and all(
            test.holds(row[test.column]) for test in self.tests
        )

    def own(self, occurrence: Occurrence, names: tuple[str, ...]) -> tuple[str, ...]:
        """What the table calls these columns of the join."""
        return tuple(self.columns[occurrence.columns.index(name)] for name in names)


@dataclass(frozen=True, slots=True)
class NaturalJoin:
    """``tables``: by occurrence. ``outputs``: the column of the join that each column is which the view stores."""

    view: JoinView
    tables: Mapping[str, JoinedTable]
    outputs: tuple[str, ...]

    def asks(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The tables that may be asked, and by which columns of their own: whatever else of the join is known."""
        found: dict[tuple[str, tuple[str, ...]], None] = {}
        for one in self.view.occurrences:
            others = [other for other in self.view.occurrences if other is not one]
            for size in range(1, len(others) + 1):
                for some in combinations(others, size):
                    known = {name for other in some for name in other.columns}
                    equal = tuple(name for name in one.columns if name in known)
                    if equal:
                        table = self.tables[one.name]
                        found[table.relation, table.own(one, equal)] = None
        yield from found


def natural_join(plan: ViewPlan, sources: Mapping[str, str]) -> NaturalJoin:
    """``sources``: where each table is. NotAskableError tells why a view has no such form."""
    block = plan.outline.rel if plan.summary is None or not plan.keeps_keys else plan.summary.input
    if (plan.summary is not None and not plan.keeps_keys) or not isinstance(block, Block):
        raise NotAskableError("it is more than SELECT … FROM … JOIN … WHERE …")
    places = _places(block, sources)
    named, tests = _conditions(block, places)
    columns = {alias: _columns(block, alias, leaf) for alias, leaf in places.items()}
    shared = {name for name in named.values() if sum(name == other for other in named.values()) > 1}
    occurrences, tables = list[Occurrence](), dict[str, JoinedTable]()
    for alias, leaf in places.items():
        names = tuple(named.get((alias, own), f"{alias}.{own}") for own in columns[alias])
        if len(set(names)) < len(names):
            raise NotAskableError(f"it compares two columns of '{alias}' with one of another table")
        key = tuple(named.get((alias, own), f"{alias}.{own}") for own in leaf.constraints.primary_key)
        occurrences.append(Occurrence(alias, names, key, sources[leaf.relation], alias))
        compared = tuple(own for own, name in zip(columns[alias], names, strict=True) if name in shared)
        tables[alias] = JoinedTable(leaf.relation, columns[alias], compared, tuple(tests.get(alias, ())))
    outputs = tuple(_output(output.expression, named) for output in block.outputs)
    _check_types(block, places)
    return NaturalJoin(JoinView(tuple(occurrences), tuple(dict.fromkeys(outputs))), tables, outputs)


def _places(block: Block, sources: Mapping[str, str]) -> dict[str, Leaf]:
    found: dict[str, Leaf] = {}
    for source in block.sources:
        if not isinstance(source.rel, Leaf):
            raise NotAskableError(f"it joins with '{source.alias}', which is made on the way")
        if source.rel.relation not in sources:
            raise NotAskableError(f"it reads '{source.rel.relation}', which is no table of a source")
        found[source.alias] = source.rel
    return found


def _columns(block: Block, alias: str, leaf: Leaf) -> tuple[str, ...]:
    """Those that are shown or compared, and the key. What conditions on this table alone look at is not carried."""
    told = [output.expression for output in block.outputs] + [one for one in block.where if len(_aliases(one)) > 1]
    used = {name for place, name in columns_in(told) if place == alias}
    key = leaf.constraints.primary_key if set(leaf.constraints.primary_key) <= set(leaf.columns) else ()
    return tuple(name for name in leaf.columns if name in used or name in key)


def _aliases(condition: exp.Expr) -> set[str]:
    return {alias for alias, _ in columns_in([condition])}


def _conditions(block: Block, places: Mapping[str, Leaf]) -> tuple[dict[Place, str], dict[str, list[ColumnTest]]]:
    classes, tests = ColumnClasses(), dict[str, list[ColumnTest]]()
    for condition in block.where:
        if (pair := tied(block, condition)) is not None:
            classes.join(*pair)
        elif (test := _test(condition, places)) is not None:
            tests.setdefault(test[0], []).append(test[1])
        else:
            raise NotAskableError(
                f"the condition {render(condition)} is neither an equality of columns of two tables, whole numbers or "
                "text, nor a comparison of one with a value"
            )
    return classes.named, tests


def _test(condition: exp.Expr, places: Mapping[str, Leaf]) -> tuple[str, ColumnTest] | None:
    """The table that a condition looks at, and what it asks of which column."""
    inner, wanted = (condition.this, False) if isinstance(condition, exp.Not) else (condition, True)
    if isinstance(inner, exp.Is) and isinstance(inner.this, exp.Column) and isinstance(inner.expression, exp.Null):
        return inner.this.table, ColumnTest(inner.this.name, lambda value: (value is None) is wanted)
    sign = _SIGNS.get(type(condition))
    if sign is None:
        return None
    one, other = condition.this, condition.expression
    if not isinstance(one, exp.Column):
        one, other, sign = other, one, _TURNED.get(sign, sign)
    if not isinstance(one, exp.Column):
        return None
    value = _value(other, places[one.table].type_of(one.name))
    if value is None:
        return None
    compare = COMPARES[sign]
    return one.table, ColumnTest(one.name, lambda found: found is not None and compare(found, value))


def _value(literal: exp.Expr, type_: str | None) -> int | str | None:
    """What a literal is, where its type is the column's own."""
    negative = isinstance(literal, exp.Neg)
    literal = literal.this if negative else literal
    if not isinstance(literal, exp.Literal) or type_ not in KEY_TYPES:
        return None
    if literal.is_string or type_ == "string":
        return str(literal.this) if literal.is_string and type_ == "string" and not negative else None
    return int(literal.this) * (-1 if negative else 1) if literal.this.isdigit() else None


def _output(expression: exp.Expr, named: Mapping[Place, str]) -> str:
    if not isinstance(expression, exp.Column):
        raise NotAskableError(f"it shows {render(expression)}, which is no column of a table")
    return named.get((expression.table, expression.name), f"{expression.table}.{expression.name}")


def _check_types(block: Block, places: Mapping[str, Leaf]) -> None:
    for alias, name in columns_in([output.expression for output in block.outputs]):
        type_ = places[alias].type_of(name)
        if type_ not in _EXACT and not (type_ or "").startswith("decimal("):
            raise NotAskableError(f"values of column '{name}', which is shown, are of type {type_} and compare loosely")
