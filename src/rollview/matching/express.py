"""Writing an expression over tables in terms of what a view stores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from rollview.algebra.expressions import identifiers
from rollview.algebra.kinds import FLOATING, kinds_of_expression
from rollview.algebra.operators.leaf import Leaf
from rollview.matching.flat import NotStored
from rollview.matching.normal import Normal

_COMPARING = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Count)
"""Whatever equals a value will do in its place."""
_PASSING_ON = (exp.Paren, exp.Sum, exp.Avg, exp.Min, exp.Max)


def kept_as_it_was(key: exp.Expr, leaf_of: Mapping[str, Leaf]) -> bool:
    """A view has one zero of two, and one spelling of texts that a collation takes for equal."""
    if not identifiers(key) <= leaf_of.keys():
        return False
    types = (leaf_of[one.table].types.get(one.name, "") for one in key.find_all(exp.Column))
    return FLOATING not in kinds_of_expression(key, leaf_of) and not any("collate" in type_.lower() for type_ in types)


@dataclass(frozen=True, slots=True)
class StoredValues:
    """Expressions that can be read off a view, by their normal form there; columns of other places stay as they are."""

    known: Mapping[exp.Expr, exp.Expr]
    normal: Normal
    free: frozenset[str]
    """Aliases of places that are read beside the view."""
    equal: Mapping[exp.Expr, exp.Expr] = field(default_factory=dict)
    """What the view has an equal of: enough to be shown or compared, not for an expression that looks closer."""

    @classmethod
    def of(
        cls,
        held: Iterable[tuple[exp.Expr, exp.Column]],
        normal: Normal,
        free: frozenset[str],
        equal: Iterable[tuple[exp.Expr, exp.Column]] = (),
    ) -> StoredValues:
        known, like = ({normal.of(expression): place for expression, place in some} for some in (held, equal))
        return cls(known, normal, free, like)

    def write(
        self,
        expression: exp.Expr,
        calls: Collection[exp.Expr] = (),
        call: Callable[[exp.Expr], exp.Expr] | None = None,
        *,
        compared: bool = True,
    ) -> exp.Expr:
        """``calls``: aggregate calls in it, which ``call`` writes; without it they are written like all else.
        ``compared``: what equals it will do."""
        if call is not None and expression in calls:
            return call(expression)
        found = self._found(self.normal.of(expression), compared)
        if found is not None:
            return found.copy()
        if isinstance(expression, exp.Column):
            if expression.table in self.free:
                return expression.copy()
            raise NotStored(expression)
        inside = isinstance(expression, _COMPARING) or (compared and isinstance(expression, _PASSING_ON))
        parts = {name: self._part(value, calls, call, inside) for name, value in expression.args.items()}
        return type(expression)(**parts)

    def _found(self, wanted: exp.Expr, compared: bool) -> exp.Expr | None:
        found = self.known.get(wanted)
        return self.equal.get(wanted) if found is None and compared else found

    def _part(
        self,
        value: object,
        calls: Collection[exp.Expr],
        call: Callable[[exp.Expr], exp.Expr] | None,
        compared: bool,
    ) -> object:
        if isinstance(value, exp.Expr):
            return self.write(value, calls, call, compared=compared)
        return [self._part(one, calls, call, compared) for one in value] if isinstance(value, list) else value
